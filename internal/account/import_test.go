package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestImportedKeysAnswerToTheirSecrets checks that a key imported by the hash of its secret
// authenticates the secret.
func TestImportedKeysAnswerToTheirSecrets(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		for _, secret := range []string{"sk-" + strings.Repeat("aZ09", 12), "sk-A1b2-C3d4_E5f6-G7h8_Ij", "a.key=of/some+other~program!"} {
			proof, err := ProofOf(secret)
			if sum := sha256.Sum256([]byte(secret)); err != nil || proof.Hash != hex.EncodeToString(sum[:]) {
				t.Fatalf("proof %+v, %v", proof, err)
			}
			proof.Hash, proof.Hint = strings.ToUpper(proof.Hash), "sk-..."+secret[len(secret)-4:]
			k := update(t, db, func(tx *store.Tx) (Key, error) { return ImportKeyTx(tx, a.ID, KeySettings{Name: "old"}, proof) })
			keys := NewKeys(KeysOptions{DB: db})
			got, err := keys.Authenticate(context.Background(), secret, netip.Addr{}, false)
			if err != nil || got.Key != k.ID || got.Account != a.ID {
				t.Errorf("%s is %+v, %v", secret, got, err)
			}
			list := update(t, db, func(tx *store.Tx) ([]Key, error) {
				list, _, err := KeysByHintTx(tx, secret, "", 10)
				return list, err
			})
			if len(list) != 1 || list[0].ID != k.ID {
				t.Errorf("the search for %s returned %+v", secret, list)
			}
			if _, err := keys.Authenticate(context.Background(), secret+"x", netip.Addr{}, false); err == nil {
				t.Errorf("%sx is accepted too", secret)
			}
			keys.Close()
		}
	})
}

func TestImportedKeysAreRefused(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		deletedKey := createKey(t, db, a.ID, KeySettings{})
		existing, err := ProofOf(deletedKey.secret)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteKeyTx(tx, deletedKey.ID) })
		good := strings.Repeat("ab", 32)
		for name, test := range map[string]struct {
			proof Proof
			want  error
		}{
			"a deleted key's":  {existing, ErrKeyTaken},
			"no hexadecimal":   {Proof{Hash: strings.Repeat("xy", 32)}, ErrKeyHash},
			"too short":        {Proof{Hash: good[:62]}, ErrKeyHash},
			"a secret as hint": {Proof{Hash: good, Hint: deletedKey.secret}, ErrKeyHash},
		} {
			_, err := try(t, db, func(tx *store.Tx) (Key, error) { return ImportKeyTx(tx, a.ID, KeySettings{}, test.proof) })
			if !errors.Is(err, test.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := ProofOf("sk-1234"); !errors.Is(err, ErrKeyHash) {
			t.Errorf("a guessable secret is accepted: %v", err)
		}
	})
}
