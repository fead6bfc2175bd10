package account

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"tollgate/internal/fault"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	p, ctx := NewPasswords(), context.Background()
	first, err := p.Hash(ctx, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.Hash(ctx, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(first, "$argon2id$v=19$m=19456,t=2,p=1$") || first == second || strings.Contains(first, "horse") {
		t.Errorf("Hash returned %q and %q, want different argon2id hashes", first, second)
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horsf": false, "": false, strings.Repeat("x", 2000): false} {
		if got, err := p.Verify(ctx, first, password); got != want || err != nil {
			t.Errorf("Verify(%.20q) = %v, %v, want %v", password, got, err, want)
		}
	}
}

// TestVerifyForeignHash verifies a hash of the reference implementation (salt "somesalt", t=2,
// m=65536, p=1, 24 bytes).
func TestVerifyForeignHash(t *testing.T) {
	t.Parallel()
	const phc = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if ok, err := NewPasswords().Verify(context.Background(), phc, "password"); !ok || err != nil {
		t.Errorf("Verify = %v, %v, want true", ok, err)
	}
}

func TestPasswordFaults(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"", "1234567", "äöüäöüä", strings.Repeat("x", 1025), "\xff\xff\xff\xff\xff\xff\xff\xff"} {
		_, err := NewPasswords().Hash(context.Background(), password)
		wantFault(t, err, fault.InvalidRequest, "password")
	}
	for _, password := range []string{"12345678", "äöüäöüäö", strings.Repeat("x", 1024)} {
		if err := CheckPassword(password); err != nil {
			t.Errorf("CheckPassword(%.20q) = %v, want nil", password, err)
		}
	}
}

func TestParsePHCFaults(t *testing.T) {
	t.Parallel()
	const salt, hash = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, phc := range []string{
		"", "secret", "$2y$10$abc",
		"$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=99999999,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=19456,t=99,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=19456,t=0,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=19456,t=2,p=0$" + salt + "$" + hash,
		"$argon2id$v=19$m=19456,t=2,p=1$$" + hash,
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$",
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$!!",
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$" + hash + "$",
	} {
		if _, err := NewPasswords().Verify(context.Background(), phc, "password"); err == nil {
			t.Errorf("Verify accepted the hash %q", phc)
		}
	}
}

func TestPasswordsTwoAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords()
		for range 2 {
			if err := p.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		third := make(chan error, 1)
		go func() { third <- p.enter(ctx) }()
		synctest.Wait()
		select {
		case err := <-third:
			t.Fatalf("the third caller did not wait, but got %v", err)
		default:
		}
		cancel()
		wantFault(t, <-third, fault.ServiceUnavailable, "")
		p.leave()
		if err := p.enter(t.Context()); err != nil {
			t.Errorf("enter after leave returned %v", err)
		}
	})
}
