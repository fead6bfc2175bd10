package admin

import (
	"context"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// userAnswer is a console sign-in; nothing of its password is ever shown.
type userAnswer struct {
	ID       string `json:"id"`
	Account  string `json:"account"`
	Email    string `json:"email"`
	Disabled bool   `json:"disabled"`
	Operator bool   `json:"operator"`
	Created  int64  `json:"created"`
}

func showUser(u account.User) userAnswer {
	return userAnswer{ID: u.ID, Account: u.Account, Email: u.Email, Disabled: u.Disabled, Operator: u.Operator, Created: seconds(u.CreatedMS)}
}

// readUser reads the fields that may be set about a user, and hashes the
// password.
func (s *server) readUser(ctx context.Context, body object) (u account.UserChange, err error) {
	var password *string
	if err := body.decode(optionalTextField("email", &u.Email), optionalTextField("password", &password),
		flagField("disabled", &u.Disabled), flagField("operator", &u.Operator)); err != nil {
		return u, err
	}
	if u.Email != nil {
		if _, err := account.ParseEmail(*u.Email); err != nil { // before the work of hashing
			return u, err
		}
	}
	if password != nil {
		hash, err := s.Passwords.Hash(ctx, *password)
		if err != nil {
			return u, err
		}
		u.PasswordHash = &hash
	}
	return u, nil
}

func (s *server) createUser(c *call) (any, error) {
	body, err := c.readObject()
	if err != nil {
		return nil, err
	}
	u, err := s.readUser(c.ctx, body)
	if err != nil {
		return nil, err
	}
	if u.Email == nil {
		return nil, fault.At(fault.InvalidRequest, "email", "email is required: it is what the user signs in with.")
	}
	if u.PasswordHash == nil {
		return nil, fault.At(fault.InvalidRequest, "password", "password is required.")
	}
	in := account.SignIn{Email: *u.Email, PasswordHash: *u.PasswordHash,
		Disabled: u.Disabled != nil && *u.Disabled, Operator: u.Operator != nil && *u.Operator}
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		u, err := operator.CreateUserTx(tx, s.by(c), c.id, in)
		return showUser(u), err
	})
}

func (s *server) listUsers(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		found, more, err := account.ListUsersTx(tx, c.id, after, limit)
		return newList(found, more, showUser), err
	})
}

func (s *server) getUser(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		u, err := account.GetUserTx(tx, c.id)
		return showUser(u), err
	})
}

func (s *server) changeUser(c *call) (any, error) {
	body, err := c.readObject()
	if err != nil {
		return nil, err
	}
	u, err := s.readUser(c.ctx, body)
	if err != nil {
		return nil, err
	}
	return change(s, c, func(tx *store.Tx) (any, error) {
		u, err := operator.ChangeUserTx(tx, s.by(c), c.id, u)
		return showUser(u), err
	})
}

func (s *server) deleteUser(c *call) (any, error) {
	return change(s, c, func(tx *store.Tx) (any, error) {
		return gone{c.id, true}, operator.DeleteUserTx(tx, s.by(c), c.id)
	})
}
