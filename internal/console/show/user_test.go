package show

import (
	"errors"
	"testing"

	"tollgate/internal/console/part"
)

// TestRefusedUserIsNotHashed: who may add nobody, or has typed nothing that is good, keeps
// no sign-in waiting for a hash.
func TestRefusedUserIsNotHashed(t *testing.T) {
	t.Parallel()
	refused, asked := errors.New("20 within a day"), 0
	add := func(email, password string) error {
		form := part.Inputs{Fields: NewUserFields()}
		form.Field("email").Value, form.Field("password").Value = email, password
		_, err := NewUser(nil, &form, nil, func() error { asked++; return refused }) // nothing is there that could hash
		return err
	}
	for _, password := range []string{"", "right horse"} {
		if err := add("ada@example.com", password); !errors.Is(err, refused) {
			t.Errorf("with the password %q: %v", password, err)
		}
	}
	for _, bad := range [][2]string{{"ada", "right horse"}, {"ada@example.com", "short"}, {"ada", ""}} {
		if err := add(bad[0], bad[1]); err == nil || errors.Is(err, refused) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if asked != 2 {
		t.Errorf("it was asked %d times whether a user may be added, want 2", asked)
	}
}
