package admin

import (
	"context"

	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// lineSecret is a stored secret, without its value.
type lineSecret struct {
	Name    string   `json:"name"`
	Lines   []string `json:"lines"`
	Key     string   `json:"key"`
	Problem string   `json:"problem,omitempty"`
	Changed int64    `json:"changed"`
}

func showLineSecret(s operator.LineSecret) lineSecret {
	return lineSecret{Name: s.Name, Lines: s.Lines, Key: s.Key, Problem: s.Problem, Changed: seconds(s.ChangedMS)}
}

// secretsTx returns all secrets as a list.
func (s *server) secretsTx(tx *store.Tx) (any, error) {
	all, err := operator.SecretsTx(tx, s.SecretKeys)
	return newList(all, false, showLineSecret), err
}

func (s *server) listSecrets(c *call) (any, error) { return view(s, c, s.secretsTx) }

func (s *server) putSecret(c *call) (any, error) {
	value := ""
	if _, err := c.decodeBody(textField("value", &value)); err != nil {
		return nil, err
	}
	return s.changeSecrets(c, func(tx *store.Tx) error { return operator.StoreSecretTx(tx, s.actor(c), s.SecretKeys, c.id, value) })
}

func (s *server) deleteSecret(c *call) (any, error) {
	return s.changeSecrets(c, func(tx *store.Tx) error { return operator.DeleteSecretTx(tx, s.actor(c), c.id) })
}

func (s *server) rotateSecrets(c *call) (any, error) {
	return s.changeSecrets(c, func(tx *store.Tx) error {
		_, err := operator.RotateSecretsTx(tx, s.actor(c), s.SecretKeys)
		return err
	})
}

// changeSecrets runs act and returns all secrets. It refreshes this node's catalog before the answer is
// sent.
func (s *server) changeSecrets(c *call, act func(tx *store.Tx) error) (any, error) {
	out, err := change(s, c, func(tx *store.Tx) (any, error) {
		if err := act(tx); err != nil {
			return nil, err
		}
		return s.secretsTx(tx)
	})
	if err == nil {
		s.refresh(context.WithoutCancel(c.ctx))
	}
	return out, err
}
