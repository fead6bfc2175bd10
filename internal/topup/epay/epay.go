// Package epay owns the payments of EPay sites, resellers of Alipay, WeChat Pay and others: the site's page
// for customers, the calls of its api.php, and the signature of its messages.
//
// Invariants: the site's order number is the id of the top-up. A message must have a valid signature over
// unambiguous parameters, and only names the top-up to ask about. Only an answer of api.php decides about a
// credit. No key is in an error.
package epay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/topup"
)

// Path is the path of a site's messages.
const Path = topup.Base + "/epay/notify"

// Name is the name of the provider.
const Name = "epay"

// CurrencyCode is the currency of all EPay sites.
const CurrencyCode = "cny"

// Options configure a Service. All fields but Refunds are required.
type Options struct {
	URL     string // base address of submit.php and api.php
	PID     string // the operator's number at the site
	Key     string // the operator's key at the site; see CheckKey
	Methods []topup.PayMethod
	// Refunds is true if the site's api.php pays back whole payments (act=refund) and reports them.
	Refunds bool
	HTTP    *http.Client
}

// Service is an EPay site as a topup.PaymentProvider.
type Service struct{ o Options }

// New returns a service. PID and key must have passed CheckPID and CheckKey.
func New(o Options) *Service {
	o.URL = strings.TrimRight(o.URL, "/")
	return &Service{o}
}

// CheckPID returns an error unless a text looks like an operator's number.
func CheckPID(pid string) error {
	if !regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`).MatchString(pid) {
		return errors.New("must be your number (pid) at the EPay site")
	}
	return nil
}

// CheckKey returns an error for a key that is too short to protect signatures.
func CheckKey(key string) error {
	if len(key) < 16 || strings.ContainsAny(key, " \t\r\n") {
		return errors.New("must be your key at the EPay site, with at least 16 characters")
	}
	return nil
}

// titles are the names of common ways to pay for people.
var titles = map[string]string{"alipay": "Alipay", "wxpay": "WeChat Pay", "qqpay": "QQ Wallet", "bank": "Bank card", "jdpay": "JD Pay",
	"paypal": "PayPal", "usdt": "USDT"}

var methodName = regexp.MustCompile(`^[0-9a-z_]{1,20}$`)

// ParseMethods reads ways to pay: the site's name (type), or NAME=TITLE.
func ParseMethods(texts []string) (methods []topup.PayMethod, err error) {
	seen := map[string]bool{}
	for _, text := range texts {
		name, title, _ := strings.Cut(text, "=")
		if title = strings.TrimSpace(title); title == "" {
			title = titles[name]
		}
		switch {
		case !methodName.MatchString(name) || seen[name]:
			return nil, fmt.Errorf("%q: must be the site's names for ways to pay (type), each once, such as alipay,wxpay", text)
		case title == "":
			return nil, fmt.Errorf("%q: must be NAME=TITLE with a title for customers, because the name is not a common one", text)
		}
		seen[name] = true
		methods = append(methods, topup.PayMethod{Name: name, Title: title})
	}
	if len(methods) == 0 {
		return nil, errors.New("must have at least one way to pay, such as alipay")
	}
	return methods, nil
}

// Info implements topup.PaymentProvider. EPay sites have no test mode.
func (c *Service) Info() topup.ProviderInfo {
	refunds := topup.RefundByHand
	if c.o.Refunds {
		refunds = topup.RefundWhole
	}
	return topup.ProviderInfo{Name: Name, Title: "EPay", Path: Path, Live: true, Methods: c.o.Methods, Refunds: refunds}
}

// Acknowledge implements topup.PaymentProvider. A site repeats its message until it reads the text success.
func (c *Service) Acknowledge(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "success") // the site repeats the message if the answer is lost
}

// Begin implements topup.PaymentProvider. The site creates its order when the customer opens the page, so
// Begin makes no call and a repetition has no effect.
func (c *Service) Begin(_ context.Context, o topup.Order) (topup.Checkout, error) {
	q := url.Values{"pid": {c.o.PID}, "type": {o.Method}, "out_trade_no": {o.ID}, "notify_url": {o.NotifyURL}, "return_url": {o.ReturnURL},
		"name": {"API credit"}, "money": {o.Currency.Decimal(o.Minor)}}
	q.Set("sign", sign(q, c.o.Key))
	q.Set("sign_type", "MD5")
	return topup.Checkout{Address: c.o.URL + "/submit.php?" + q.Encode()}, nil
}

// order is an order of the site.
type order struct {
	PID     text `json:"pid"`
	ID      text `json:"trade_no"`
	Topup   text `json:"out_trade_no"`
	Method  text `json:"type"`
	Money   text `json:"money"`
	Status  text `json:"status"`
	Created text `json:"addtime"`
}

// The values of order.Status. Other values mean that the order is not paid. A site never ends an unpaid order.
const (
	paidStatus     = "1"
	refundedStatus = "2" // in part or as a whole
)

// text is a JSON value. Some sites send a string, others a number.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(t))
	}
	var n json.Number
	err := json.Unmarshal(raw, &n)
	*t = text(n)
	return err
}

// Query implements topup.PaymentProvider.
func (c *Service) Query(ctx context.Context, t topup.Topup) (topup.ProviderPayment, error) {
	o, err := c.order(ctx, t.ID)
	if isMissing(err) {
		return topup.ProviderPayment{State: topup.Missing}, nil
	}
	if err != nil {
		return topup.ProviderPayment{}, err
	}
	return c.payment(o)
}

// order asks for the order of a top-up.
func (c *Service) order(ctx context.Context, id string) (o order, err error) {
	err = c.call(ctx, http.MethodGet, "order", url.Values{"out_trade_no": {id}}, &o)
	return o, err
}

// payment returns the payment of an order.
func (c *Service) payment(o order) (topup.ProviderPayment, error) {
	cny, err := topup.CurrencyOf(CurrencyCode)
	if err != nil {
		return topup.ProviderPayment{}, err
	}
	minor, err := cny.Parse(string(o.Money))
	if err != nil {
		return topup.ProviderPayment{}, fmt.Errorf("call epay: the money of the order %s %w", o.Topup, err)
	}
	if o.PID != "" && string(o.PID) != c.o.PID {
		return topup.ProviderPayment{}, fmt.Errorf("call epay: the order %s belongs to the pid %.64q", o.Topup, string(o.PID))
	}
	p := topup.ProviderPayment{Topup: string(o.Topup), State: topup.Missing, Live: true, Currency: CurrencyCode, Method: string(o.Method),
		Amount: minor, Total: minor, CreatedMS: o.createdMS()}
	if o.Status == paidStatus || o.Status == refundedStatus {
		p.State, p.ID, p.HasRefund = topup.Succeeded, string(o.ID), o.Status == refundedStatus
	}
	return p, nil
}

// createdMS returns when an order was created, or 0 if the site does not report it. Sites are in the time
// zone of China.
func (o order) createdMS() int64 {
	at, err := time.ParseInLocation(time.DateTime, string(o.Created), time.FixedZone("CST", 8*60*60))
	if err != nil {
		return 0
	}
	return at.UnixMilli()
}

// Refund implements topup.PaymentProvider. A site has no keys for repetitions, but it pays a whole payment
// back at most once and then reports the order as refunded.
func (c *Service) Refund(ctx context.Context, t topup.Topup, minor int64, _ string) error {
	if !c.o.Refunds || minor != t.Total {
		return fmt.Errorf("%w: this site pays back whole payments only", topup.ErrRefused)
	}
	isRefunded := func() (bool, error) {
		o, err := c.order(ctx, t.ID)
		return o.Status == refundedStatus, err
	}
	if done, err := isRefunded(); done || err != nil {
		return err
	}
	var ignored struct{}
	err := c.call(ctx, http.MethodPost, "refund", url.Values{"trade_no": {t.Payment}, "money": {t.Currency.Decimal(minor)}}, &ignored)
	refusal, ok := errors.AsType[*codeError](err)
	if !ok {
		return err
	}
	if done, err := isRefunded(); done || err != nil { // some sites have another code for success
		return err
	}
	return fmt.Errorf("%w: %w", topup.ErrRefused, refusal)
}

// pageSize is the largest page of a site's list of orders.
const pageSize = 50

// List implements topup.PaymentProvider. A site lists the newest orders first.
func (c *Service) List(ctx context.Context, sinceMS int64) (list []topup.ProviderPayment, err error) {
	seen := map[text]bool{}
	for page := 1; ; page++ {
		var answer struct {
			Data []order `json:"data"`
		}
		err := c.call(ctx, http.MethodGet, "orders", url.Values{"limit": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)}}, &answer)
		if err != nil {
			return nil, err
		}
		isLast, before := len(answer.Data) < pageSize, len(seen)
		for _, o := range answer.Data {
			if at := o.createdMS(); at != 0 && at < sinceMS {
				isLast = true
				continue
			}
			if seen[o.ID] { // a new order has moved the pages
				continue
			}
			seen[o.ID] = true
			if !strings.HasPrefix(string(o.Topup), topup.IDPrefix) {
				continue // of another program with the same pid
			}
			p, err := c.payment(o)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
		switch {
		case isLast:
			return list, nil
		case len(seen) == before || len(seen) >= topup.MaxListed:
			return nil, fmt.Errorf("call epay: the site does not list more than %d orders; compare fewer days", len(seen))
		}
	}
}

// maxAnswer bounds an answer of api.php, in bytes.
const maxAnswer = 1 << 20

// call calls api.php and reads its answer. The error is a *codeError if the site refuses the call.
func (c *Service) call(ctx context.Context, method, act string, q url.Values, answer any) error {
	q.Set("pid", c.o.PID)
	q.Set("key", c.o.Key)
	address := c.o.URL + "/api.php"
	if method == http.MethodGet {
		q.Set("act", act)
	} else {
		address += "?act=" + act
	}
	status, raw, err := topup.ProviderCall{Method: method, URL: address, Params: q, MaxAnswer: maxAnswer}.Send(ctx, c.o.HTTP)
	switch {
	case err != nil:
		return fmt.Errorf("call epay: %s: %w", act, err)
	case status != http.StatusOK:
		return fmt.Errorf("call epay: %s is answered with status %d", act, status)
	}
	return readAnswer(act, raw, answer)
}

// readAnswer reads the answer of api.php.
func readAnswer(act string, raw []byte, answer any) error {
	var head struct {
		Code    text   `json:"code"`
		Message string `json:"msg"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("call epay: the answer to %s is not valid: %w", act, err)
	}
	if head.Code != "1" {
		return &codeError{act, string(head.Code), head.Message}
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("call epay: the answer to %s is not valid: %w", act, err)
	}
	return nil
}

// codeError is a site's refusal of a call.
type codeError struct{ act, code, message string }

// Error implements error.
func (e *codeError) Error() string {
	return fmt.Sprintf("call epay: %s is answered with code %.20s: %.300s", e.act, e.code, e.message)
}

// isMissing reports whether a call asked for an unknown order. A wrong key has another code.
func isMissing(err error) bool {
	e, ok := errors.AsType[*codeError](err)
	return ok && e.code == "-1"
}
