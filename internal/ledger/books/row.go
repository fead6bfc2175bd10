package books

import (
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
)

// JobEpoch replaces a node's epoch in the hold of a job: such a hold outlives every node, and only
// its job ends it.
const JobEpoch = "job"

// AccountRow is an account's row.
type AccountRow struct {
	ID       string
	Balance  money.Amount
	Floor    money.Amount // minimum of the balance less all holds, for admissions
	Disabled bool
	Seq      int64 // number of the last movement
	Low      Level
	Dirty    bool // the row was changed and must be written
}

// KeyRow is a key's row.
type KeyRow struct {
	ID, Account        string
	Version            int64
	Disabled           bool
	RPM                int64        // requests per minute; -1 means no limit
	DailyBudget, Limit money.Amount // -1 means no limit
	Spent              money.Amount
	LastUsedMS         int64
	Dirty              bool

	// The number and time of the newest hit of the rate window, or 0.
	Hits, LastHitMS int64
}

// HoldRow is the row of a running request.
type HoldRow struct {
	ID, Epoch, Account, Key, Model, Endpoint string
	Job                                      string // empty for chat
	Day, Revision                            int64
	Free                                     bool
	Amount                                   money.Amount
	Factor                                   money.Factor // of the prices; 0 means no factor
	CreatedMS                                int64        // when the request arrived
	AdmittedMS                               int64        // when this process admitted the request, otherwise 0
	Cost                                     money.Amount // of the stream so far
	Tokens                                   Tokens
	Quantity                                 measure.Quantity
	Line                                     string
}

// ReceiptRow is the row of an ended request.
type ReceiptRow struct {
	Hold      HoldRow
	Seq       int64
	End       End
	Attempts  string // JSON
	Cost      money.Amount
	Over      money.Amount // usage above the hold, not charged
	Balance   money.Amount
	StandsFor int64 // the number of refusals that a sampled row stands for
	EndedMS   int64
}

// HitKey names an admitted request in a key's rate window.
type HitKey struct {
	Key string
	N   int64
}

// The kinds of entries. Single charges have no entry.
const (
	EntryCredit   = "credit"
	EntryTakeBack = "take_back"
	EntryTrial    = "trial" // a credit of the shop for a new customer
)
