package show

import (
	"errors"
	"testing"

	"tollgate/internal/console/ui"
)

// TestRejectedUserIsNotHashed checks that the password of a rejected or invalid new user is not hashed.
func TestRejectedUserIsNotHashed(t *testing.T) {
	t.Parallel()
	errRejected, checks := errors.New("20 within a day"), 0
	add := func(email, password string) error {
		form := ui.PostForm{Fields: NewUserFields()}
		form.Field("email").Value, form.Field("password").Value = email, password
		_, err := NewUser(nil, &form, nil, func() error { checks++; return errRejected }) // a hash would need the nil passwords
		return err
	}
	for _, password := range []string{"", "right horse"} {
		if err := add("ada@example.com", password); !errors.Is(err, errRejected) {
			t.Errorf("NewUser with the password %q: error %v, want that of allow", password, err)
		}
	}
	for _, bad := range [][2]string{{"ada", "right horse"}, {"ada@example.com", "short"}, {"ada", ""}} {
		if err := add(bad[0], bad[1]); err == nil || errors.Is(err, errRejected) {
			t.Errorf("NewUser(%q): error %v, want that of the wrong field", bad, err)
		}
	}
	if checks != 2 {
		t.Errorf("allow was called %d times, want 2", checks)
	}
}
