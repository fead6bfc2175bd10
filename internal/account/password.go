package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"tollgate/internal/fault"
)

// Cost of a password hash: argon2id with 19 MiB, two passes, one lane.
const (
	argonMemoryKiB = 19 * 1024
	argonPasses    = 2
	argonLanes     = 1
	argonSalt      = 16
	argonHash      = 32
)

// noPassword is the stored hash of a user without a password. It has the form and cost of other
// hashes, and matches no password.
const noPassword = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// Bounds of a password.
const (
	minPassword = 8    // characters
	maxPassword = 1024 // bytes
)

// Passwords hashes and verifies console passwords, at most two at a time, so that sign-ins can use
// up neither the memory nor the processors of the gateway.
type Passwords struct {
	slots chan struct{}
}

// NewPasswords returns a Passwords. A process should have only one, because each has its own bound.
func NewPasswords() *Passwords { return &Passwords{slots: make(chan struct{}, 2)} }

// CheckPassword returns an error if a password is too short or too long.
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password), utf8.RuneCountInString(password) < minPassword:
		return fault.At(fault.InvalidRequest, "password", "password must have at least %d characters.", minPassword)
	case len(password) > maxPassword:
		return fault.At(fault.InvalidRequest, "password", "password must have at most %d bytes.", maxPassword)
	}
	return nil
}

// Hash checks a password and returns its salted hash as a PHC string. It waits for a free slot until
// ctx ends. Call Hash outside of transactions, because it takes tens of milliseconds.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	if err := p.enter(ctx); err != nil {
		return "", err
	}
	defer p.leave()
	salt := make([]byte, argonSalt)
	rand.Read(salt) // never fails (crypto/rand)
	hash := argon2.IDKey([]byte(password), salt, argonPasses, argonMemoryKiB, argonLanes, argonHash)
	return phcText(salt, hash), nil
}

// phcText returns the PHC string of a hash.
func phcText(salt, hash []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		argonMemoryKiB, argonPasses, argonLanes, b64.EncodeToString(salt), b64.EncodeToString(hash))
}

// Verify reports whether phc is the hash of password, comparing in constant time. It returns an
// error if phc is not a valid hash, or if ctx ended during the wait for a slot.
func (p *Passwords) Verify(ctx context.Context, phc, password string) (bool, error) {
	h, err := parsePHC(phc)
	if err != nil {
		return false, err
	}
	if len(password) > maxPassword {
		return false, nil
	}
	if err := p.enter(ctx); err != nil {
		return false, err
	}
	defer p.leave()
	got := argon2.IDKey([]byte(password), h.salt, h.passes, h.memoryKiB, h.lanes, uint32(len(h.hash)))
	return subtle.ConstantTimeCompare(got, h.hash) == 1, nil
}

func (p *Passwords) enter(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Unavailable(fmt.Errorf("wait for a password slot: %w", ctx.Err()))
	}
}

func (p *Passwords) leave() { <-p.slots }

// phcHash is a parsed PHC string.
type phcHash struct {
	memoryKiB, passes uint32
	lanes             uint8
	salt, hash        []byte
}

var errPHC = errors.New("the stored password is not a valid argon2id hash")

// parsePHC parses a PHC string and bounds its cost, so that no stored text can take all memory.
func parsePHC(phc string) (phcHash, error) {
	var h phcHash
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return h, errPHC
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memoryKiB, &h.passes, &h.lanes); n != 3 || err != nil {
		return h, errPHC
	}
	var err error
	b64 := base64.RawStdEncoding.Strict()
	if h.salt, err = b64.DecodeString(parts[4]); err != nil {
		return h, errPHC
	}
	if h.hash, err = b64.DecodeString(parts[5]); err != nil {
		return h, errPHC
	}
	if h.memoryKiB < 8 || h.memoryKiB > 64*1024 || h.passes < 1 || h.passes > 10 || h.lanes < 1 || h.lanes > 4 ||
		len(h.salt) < 8 || len(h.salt) > 64 || len(h.hash) < 16 || len(h.hash) > 64 {
		return h, errPHC
	}
	return h, nil
}
