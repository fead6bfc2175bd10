package topup

import (
	"context"
	"errors"
	"net/http"
)

// PaymentProvider takes payments at a payment provider. Each method limits its own time. Without a clear
// answer, a method returns an error, and the caller repeats the call later.
type PaymentProvider interface {
	// Info describes the provider.
	Info() ProviderInfo
	// Begin creates the payment of an order and returns where the customer pays. It may be repeated for an
	// order, even after the settings have changed. The customer can pay only once. An error that wraps
	// ErrRefused is final.
	Begin(ctx context.Context, o Order) (Checkout, error)
	// Verify checks the signature of a message of the provider, and returns the top-up that the message
	// is about. The error is ErrForged if the signature is not valid.
	Verify(ctx context.Context, r *http.Request, body []byte) (Hint, error)
	// Query returns the present state of a top-up's payment. An unknown payment is Missing, not an error.
	Query(ctx context.Context, t Topup) (ProviderPayment, error)
	// Refund pays back minor of a payment, in the smallest unit. A repetition with the same key has no
	// second effect. If the error wraps ErrRefused, nothing was paid back and nothing will be.
	Refund(ctx context.Context, t Topup, minor int64, key string) error
	// List returns the payments of top-ups begun since a time, in Unix milliseconds, without their refunds
	// and disputes. It returns an error if there are too many; see MaxListed.
	List(ctx context.Context, sinceMS int64) ([]ProviderPayment, error)
	// Acknowledge answers a message after its effect was committed.
	Acknowledge(w http.ResponseWriter)
}

// MaxListed bounds the payments of PaymentProvider.List.
const MaxListed = 1000

var (
	// ErrForged reports a message without a valid signature of its provider.
	ErrForged = errors.New("the signature of the message is not valid")
	// ErrRefused reports that a provider refuses a call for good.
	ErrRefused = errors.New("the payment provider refuses")
)

// RefusalError is a final refusal of a provider. It wraps ErrRefused.
type RefusalError struct {
	// Code names the cause, the same for all payments. It may be empty.
	Code string
	Err  error
}

// Error implements error.
func (e *RefusalError) Error() string { return ErrRefused.Error() + ": " + e.Err.Error() }

// Unwrap returns ErrRefused and the cause.
func (e *RefusalError) Unwrap() []error { return []error{ErrRefused, e.Err} }

// ProviderInfo describes a provider.
type ProviderInfo struct {
	// Name is in rows, references and paths; Title is for people.
	Name, Title string
	// Path is the path of the provider's messages.
	Path string
	// Live is false in the provider's test mode, where payments move no money.
	Live bool
	// Methods are the ways to pay. The customer chooses one before the provider's page. If empty, the
	// provider's page offers them.
	Methods []PayMethod
	Refunds RefundCall
	// SavesCards is true if the provider is a CardProvider and can save cards.
	SavesCards bool
}

// MethodTitle returns the title of a way to pay, or of the provider if the provider has no such way.
func (i ProviderInfo) MethodTitle(method string) string {
	for _, m := range i.Methods {
		if m.Name == method {
			return m.Title
		}
	}
	return i.Title
}

// CardProvider is a PaymentProvider that saves cards and charges them without the customer.
type CardProvider interface {
	PaymentProvider
	// Charge charges the saved card of an automatic top-up, and returns the session of the payment. A
	// repetition has no second effect, at any later time. A declined charge is no error: Query then reports
	// the payment as Unsuccessful. If the order has ended, Charge only looks for an earlier payment. An error
	// that wraps ErrRefused is final.
	Charge(ctx context.Context, t Topup, ended bool) (session string, err error)
	// Forget removes a saved card. Forgetting an unknown card is a no-op.
	Forget(ctx context.Context, c Card) error
}

// Card is a card saved at its provider.
type Card struct {
	Customer string // the provider's id of the customer
	ID       string // the provider's id of the card
	Brand    string // such as visa
	Last     string // its last four digits
}

// RefundCall tells which refunds the provider's API can pay. The operator pays other refunds on the
// provider's own pages, and the refund here only takes back the credit.
type RefundCall int

// The values of RefundCall.
const (
	RefundAny    RefundCall = iota // any part of a payment
	RefundWhole                    // whole payments only
	RefundByHand                   // none
)

// Covers reports whether the provider's API can refund minor of a payment of total.
func (c RefundCall) Covers(minor, total int64) bool {
	return c == RefundAny || c == RefundWhole && minor == total
}

// PayMethod is a way to pay.
type PayMethod struct{ Name, Title string }

// Order describes a payment to begin.
type Order struct {
	Topup
	// Email is the customer's address, or empty.
	Email string
	// ReturnURL is the page for the customer after the payment.
	ReturnURL string
	// NotifyURL is the address for the provider's messages.
	NotifyURL string
}

// Checkout is a payment at the provider, waiting for the customer.
type Checkout struct {
	Session string // id of the session at the provider; empty if it has none
	Address string // of the page where the customer pays
}

// Hint is a verified message of a provider.
type Hint struct {
	Topup   string // empty if the message is not about a top-up
	Session string // id of the session at the provider; may be empty
	// Payment is the provider's id of the payment if the message only reports its success. It may be empty.
	Payment string
	// Warning is a message for the operator, such as the bank's suspicion of fraud. It may be empty.
	Warning string
	Object  string // the provider's id of the object of the warning
}

// PaymentState is the state of a payment at its provider.
type PaymentState string

// The states of a payment.
const (
	Open         PaymentState = "open"    // not paid yet, or a delayed method is on its way
	Succeeded    PaymentState = "paid"    // the money has come
	Unsuccessful PaymentState = "failed"  // the customer's payment failed for good
	Lapsed       PaymentState = "expired" // the customer did not pay in time
	// Missing means that the provider has no payment for the order, for example because the customer has
	// not opened the provider's page. The provider does not end such an order; Sync does.
	Missing PaymentState = "missing"
)

// ProviderPayment is a payment as its provider reports it. Amounts are in the currency's smallest unit.
type ProviderPayment struct {
	Topup     string // the top-up named by the payment
	Session   string
	ID        string // of the payment; empty before it is paid
	State     PaymentState
	Live      bool
	Currency  string // lower case
	Method    string // PayMethod.Name, or empty
	Amount    int64  // paid without tax
	Total     int64  // paid with tax
	CreatedMS int64
	Card      Card  // the saved card, if the top-up saves it
	Pause     Pause // why the charge of a saved card failed; PauseDeclined if empty
	Refunds   []ProviderRefund
	Disputes  []ProviderDispute
	// HasRefund is true if the provider reports that a part of the payment or all of it was paid back,
	// but not how much.
	HasRefund bool
}

// ProviderRefund is a refund at the provider.
type ProviderRefund struct {
	ID     string
	Key    string // key of PaymentProvider.Refund; empty for a refund made elsewhere
	Minor  int64
	Failed bool // the money has come back, or never left
}

// ProviderDispute is a dispute at the provider, in which a customer's bank claims the money back.
type ProviderDispute struct {
	ID    string
	Minor int64
	Taken bool  // the provider has withdrawn the money from the operator
	Open  bool  // not decided yet
	DueMS int64 // when the provider needs the operator's answer, in Unix milliseconds; 0 if it needs none
}
