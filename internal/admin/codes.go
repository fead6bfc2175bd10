package admin

import (
	"tollgate/internal/account"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// codeAnswer is a redeem code (operator.md, Operator API).
type codeAnswer struct {
	ID       string       `json:"id"`
	Batch    string       `json:"batch"`
	Hint     string       `json:"hint"`
	USD      money.Amount `json:"usd"`
	State    string       `json:"state"`
	Account  *string      `json:"account"`
	Redeemed *int64       `json:"redeemed"`
	Expires  *int64       `json:"expires"`
	Created  int64        `json:"created"`
}

func showCode(c account.RedeemCode, nowMS int64) codeAnswer {
	return codeAnswer{ID: c.ID, Batch: c.Batch, Hint: c.Hint, USD: c.Value, State: c.State(nowMS), Account: nilIfZero(c.Account),
		Redeemed: nilIfZero(seconds(c.RedeemedMS)), Expires: nilIfZero(seconds(c.ExpiresMS)), Created: seconds(c.CreatedMS)}
}

// newCodeAnswer is a new code with its text. Only the first answer has the text.
type newCodeAnswer struct {
	codeAnswer
	Code string `json:"code"`
}

// newCodesAnswer has the codes created by one request.
type newCodesAnswer struct{ list[newCodeAnswer] }

func (n newCodesAnswer) withoutSecret() any {
	return newList(n.Data, false, func(c newCodeAnswer) codeAnswer { return c.codeAnswer })
}

func (s *server) createCodes(c *call) (any, error) {
	var usd *money.Amount
	var count, expires *int64
	body, err := c.decodeBody(moneyField("usd", &usd), countField("count", &count), countField("expires", &expires))
	if err != nil {
		return nil, err
	}
	n := account.NewCodes{Count: 1}
	if usd != nil {
		n.Value = *usd
	}
	if count != nil {
		n.Count = *count
	}
	if expires != nil {
		n.ExpiresMS = min(max(*expires, 1), maxExpires) * 1000
	}
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		codes, texts, err := operator.CreateCodesTx(tx, s.actor(c), n)
		if err != nil {
			return nil, err
		}
		out := newCodesAnswer{newList(codes, false, func(c account.RedeemCode) newCodeAnswer {
			return newCodeAnswer{codeAnswer: showCode(c, c.CreatedMS)}
		})}
		for i, text := range texts {
			out.Data[i].Code = text
		}
		return out, nil
	})
}

// maxExpires is the last second of the year 9999.
const maxExpires = 253402300799

func (s *server) listCodes(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		now, err := tx.NowMS()
		if err != nil {
			return nil, err
		}
		items, more, err := account.ListCodesTx(tx, after, limit)
		return newList(items, more, func(c account.RedeemCode) codeAnswer { return showCode(c, now) }), err
	})
}

func (s *server) voidCode(c *call) (any, error) {
	return change(s, c, func(tx *store.Tx) (any, error) {
		_, err := operator.VoidCodeTx(tx, s.actor(c), c.id)
		return deletedAnswer{c.id, true}, err
	})
}
