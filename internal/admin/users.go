package admin

import (
	"context"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// userAnswer is a console user. It contains no part of the password.
type userAnswer struct {
	ID       string `json:"id"`
	Account  string `json:"account"`
	Email    string `json:"email"`
	Disabled bool   `json:"disabled"`
	Operator bool   `json:"operator"` // whether the user has a role
	Role     string `json:"role,omitempty"`
	// HasPassword is false until the user has used the first link.
	HasPassword  bool `json:"has_password"`
	SecondFactor bool `json:"second_factor"`
	// TermsVersion is the version of the terms that the user accepted last, at the time TermsAccepted.
	TermsVersion  string `json:"terms_version,omitempty"`
	TermsAccepted int64  `json:"terms_accepted,omitempty"`
	Created       int64  `json:"created"`
}

func showUser(u account.User) userAnswer {
	return userAnswer{ID: u.ID, Account: u.Account, Email: u.Email, Disabled: u.Disabled, Operator: u.Role != "", Role: string(u.Role),
		HasPassword: !u.NoPassword, SecondFactor: u.FactorMS != 0,
		TermsVersion: u.TermsVersion, TermsAccepted: seconds(u.TermsMS), Created: seconds(u.CreatedMS)}
}

// invitationAnswer is a new user without a password, with a link to set the password. Only the first
// request gets the link.
type invitationAnswer struct {
	userAnswer
	Link    string `json:"link"`
	Expires int64  `json:"link_expires"`
}

func (u invitationAnswer) withoutSecret() any { return u.userAnswer }

// linkAnswer is a new link for a user.
type linkAnswer struct {
	User    string           `json:"user"`
	Kind    account.LinkKind `json:"kind"`
	Link    string           `json:"link"`
	Expires int64            `json:"link_expires"`
}

// readUser decodes the settable fields of a user and the extra fields, and hashes the password. The old
// field operator stands for the role of an owner, or for no role.
func (s *server) readUser(ctx context.Context, body object, extra ...field) (u account.UserChange, err error) {
	var password, role *string
	var isOperator *bool
	if err := body.decode(append([]field{optionalTextField("email", &u.Email), optionalTextField("password", &password),
		flagField("disabled", &u.Disabled), flagField("operator", &isOperator), roleField(&role)}, extra...)...); err != nil {
		return u, err
	}
	if u.Role, err = roleOf(isOperator, role); err != nil {
		return u, err
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

// roleField is the field of a role; null takes the role away.
func roleField(dst **string) field {
	f := optionalTextField("role", dst)
	f.must, f.null = "a text or null", func() { *dst = new("") }
	return f
}

// roleOf returns the role in the fields operator and role, or nil if both are missing.
func roleOf(isOperator *bool, name *string) (*account.OperatorRole, error) {
	switch {
	case name != nil && isOperator != nil:
		return nil, fault.At(fault.InvalidRequest, "role", "role and operator mean the same: send role alone.")
	case name != nil && *name == "", isOperator != nil && !*isOperator:
		return new(account.OperatorRole("")), nil
	case name != nil:
		role, err := account.ParseRole(*name)
		return &role, err
	case isOperator != nil:
		return new(account.Owner), nil
	}
	return nil, nil
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
	signIn := account.SignIn{Email: *u.Email, Disabled: u.Disabled != nil && *u.Disabled}
	if u.Role != nil {
		signIn.Role = *u.Role
	}
	if u.PasswordHash == nil {
		return s.inviteUser(c, body, signIn)
	}
	signIn.PasswordHash = *u.PasswordHash
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		u, err := operator.CreateUserTx(tx, s.actor(c), c.id, signIn)
		return showUser(u), err
	})
}

func (s *server) inviteUser(c *call, body object, signIn account.SignIn) (any, error) {
	return s.update(c, body, func(tx *store.Tx) (any, error) {
		l, err := operator.InviteTx(tx, s.actor(c), s.Mails, s.PublicURL, c.id, signIn)
		return invitationAnswer{showUser(l.User), l.Address, seconds(l.ExpiresMS)}, err
	})
}

// linkUser creates a link. It ignores Idempotency-Key, because a client without the first answer
// needs another link.
func (s *server) linkUser(c *call) (any, error) {
	if err := c.readEmpty(); err != nil {
		return nil, err
	}
	return change(s, c, func(tx *store.Tx) (any, error) {
		l, err := operator.CreateLinkTx(tx, s.actor(c), s.Mails, s.PublicURL, c.id)
		return linkAnswer{l.User.ID, l.Kind, l.Address, seconds(l.ExpiresMS)}, err
	})
}

func (s *server) listUsers(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := account.ListUsersTx(tx, c.id, after, limit)
		return newList(items, more, showUser), err
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
	var factor *bool
	u, err := s.readUser(c.ctx, body, flagField("second_factor", &factor))
	if err != nil {
		return nil, err
	}
	if factor != nil && *factor {
		return nil, fault.At(fault.InvalidRequest, "second_factor",
			"second_factor can only be turned off here: a user turns it on in the console, with a code of an authenticator app.")
	}
	u.NoFactor = factor != nil
	return change(s, c, func(tx *store.Tx) (any, error) {
		u, err := operator.ChangeUserTx(tx, s.actor(c), c.id, u)
		return showUser(u), err
	})
}

func (s *server) deleteUser(c *call) (any, error) {
	return change(s, c, func(tx *store.Tx) (any, error) {
		return deletedAnswer{c.id, true}, operator.DeleteUserTx(tx, s.actor(c), c.id)
	})
}
