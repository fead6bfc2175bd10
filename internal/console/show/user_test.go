package show

import (
	"errors"
	"testing"

	"tollgate/internal/console/ui"
)

// TestRefusedUserIsNotHashed checks that a rejected or invalid new user does not delay sign-ins by
// a hash.
func TestRefusedUserIsNotHashed(t *testing.T) {
	t.Parallel()
	refused, checks := errors.New("20 within a day"), 0
	add := func(email, password string) error {
		form := ui.PostForm{Fields: NewUserFields()}
		form.Field("email").Value, form.Field("password").Value = email, password
		_, err := NewUser(nil, &form, nil, func() error { checks++; return refused }) // a hash would need the nil passwords
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
	if checks != 2 {
		t.Errorf("allow was called %d times, want 2", checks)
	}
}
