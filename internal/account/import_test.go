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

// TestImportedKeysAuthenticate checks that a key imported by the hash of its secret
// authenticates the secret.
func TestImportedKeysAuthenticate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		for _, secret := range []string{"sk-" + strings.Repeat("aZ09", 12), "sk-A1b2-C3d4_E5f6-G7h8_Ij", "a.key=of/some+other~program!"} {
			proof, err := ProofOf(secret)
			if sum := sha256.Sum256([]byte(secret)); err != nil || proof.Hash != hex.EncodeToString(sum[:]) {
				t.Fatalf("ProofOf(%s) = %+v, %v, want the hash %x", secret, proof, err, sum)
			}
			proof.Hash, proof.Hint = strings.ToUpper(proof.Hash), "sk-..."+secret[len(secret)-4:]
			k := update(t, db, func(tx *store.Tx) (Key, error) { return ImportKeyTx(tx, a.ID, KeySettings{Name: "old"}, proof) })
			keys := NewKeys(KeysOptions{DB: db})
			got, err := keys.Authenticate(context.Background(), secret, netip.Addr{}, false)
			if err != nil || got.Key != k.ID || got.Account != a.ID {
				t.Errorf("Authenticate(%s) = %+v, %v, want key %s", secret, got, err, k.ID)
			}
			list := update(t, db, func(tx *store.Tx) ([]Key, error) {
				list, _, err := KeysByHintTx(tx, secret, "", 10)
				return list, err
			})
			if len(list) != 1 || list[0].ID != k.ID {
				t.Errorf("KeysByHintTx(%s) = %+v, want key %s", secret, list, k.ID)
			}
			if _, err := keys.Authenticate(context.Background(), secret+"x", netip.Addr{}, false); err == nil {
				t.Errorf("Authenticate accepts %sx", secret)
			}
			keys.Close()
		}
	})
}

func TestImportKeyFaults(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := createAccount(t, db, "a")
		deletedKey := createKey(t, db, a.ID, KeySettings{})
		existing, err := ProofOf(deletedKey.secret)
		if err != nil {
			t.Fatal(err)
		}
		storetest.Update(t, db, func(tx *store.Tx) error { return DeleteKeyTx(tx, deletedKey.ID) })
		validHash := strings.Repeat("ab", 32)
		for name, test := range map[string]struct {
			proof Proof
			want  error
		}{
			"a deleted key":    {existing, ErrKeyTaken},
			"no hexadecimal":   {Proof{Hash: strings.Repeat("xy", 32)}, ErrKeyHash},
			"too short":        {Proof{Hash: validHash[:62]}, ErrKeyHash},
			"a secret as hint": {Proof{Hash: validHash, Hint: deletedKey.secret}, ErrKeyHash},
		} {
			_, err := try(t, db, func(tx *store.Tx) (Key, error) { return ImportKeyTx(tx, a.ID, KeySettings{}, test.proof) })
			if !errors.Is(err, test.want) {
				t.Errorf("%s: got the error %v, want %v", name, err, test.want)
			}
		}
		if _, err := ProofOf("sk-1234"); !errors.Is(err, ErrKeyHash) {
			t.Errorf(`ProofOf("sk-1234") returned the error %v, want ErrKeyHash`, err)
		}
	})
}
