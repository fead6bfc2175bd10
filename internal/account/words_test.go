package account

import (
	"maps"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestParseEmail(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"a@b.example", "a@b.example"},
		{" Ada.Lovelace+x@Example.COM ", "ada.lovelace+x@example.com"},
		{"ada@localhost", "ada@localhost"},
		{"", ""},
		{"ada", ""},
		{"@example.com", ""},
		{"ada@", ""},
		{"ada@@example.com", ""},
		{"Ada <ada@example.com>", ""},
		{"ada@example.com, b@example.com", ""},
		{"a b@example.com", ""},
		{"ada@exam\nple.com", ""},
		{"ada@.example.com", ""},
		{"ada@[192.0.2.1]", ""},
		{"ada\x00@example.com", ""},
		{"ada\u202e@example.com", ""},
		{"a\u00adda@example.com", ""},
		{"ada@exam\u200bple.com", ""},
		{"ada@example.com\ufeff", ""},
		{"a\u200dda@example.com", ""},
		{"ada@exa\u200cmple.com", ""},
		{"ada\u3164@example.com", ""},
		{"\u0645\u06cc\u200c\u062e@example.com", "\u0645\u06cc\u200c\u062e@example.com"},
		{strings.Repeat("a", 65) + "@example.com", ""},
		{"a@" + strings.Repeat("b", 260), ""},
	}
	for _, test := range tests {
		got, err := ParseEmail(test.in)
		if got != test.want {
			t.Errorf("ParseEmail(%q) = %q, want %q", test.in, got, test.want)
		}
		if test.want == "" {
			wantFault(t, err, fault.InvalidRequest, "email")
		}
	}
}

func FuzzParseEmail(f *testing.F) {
	f.Add("ada@example.com")
	f.Add("\"a b\"@example.com")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseEmail(text)
		if err != nil {
			return
		}
		if reparsed, err := ParseEmail(got); err != nil || reparsed != got {
			t.Errorf("ParseEmail(%q) = %q, %v, want it unchanged", got, reparsed, err)
		}
		if strings.ContainsAny(got, "\x00\r\n ") {
			t.Errorf("ParseEmail(%q) = %q, want no blanks or control characters", text, got)
		}
	})
}

// TestInvisibleCharacters checks that names and notes with invisible characters are rejected, except
// for characters that a script or an emoji needs.
func TestInvisibleCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		hidden string // the character in the error message; empty if the text is valid
	}{
		{"Ada & Søn, Łódź 東京 \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd", ""},
		{"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ""}, // Persian, with a ZWNJ
		{"\u0915\u094d\u200d\u0937", ""},                         // Hindi, with a ZWJ
		{"\U0001f469\u200d\U0001f4bb \u2764\ufe0f", ""},          // emoji
		{"a\u00a0b\u3000c", ""},                                  // visible blanks
		{"1\ufe0f\u20e3 \u00a9\ufe0f", ""},                       // a keycap, a sign as an emoji
		{"\u2764\ufe0f\u200d\U0001f525", ""},                     // emoji joined after a selector
		{"\u845b\U000e0100\u98fe", ""},                           // a variant of a Japanese letter
		{"\u1820\u180b", ""},                                     // a variant of a Mongolian letter
		{"a\u200db", "U+200D"},                                   // joiner between letters that never join
		{"a\u200cb", "U+200C"},                                   // non-joiner between letters that never join
		{"\u200d\u0645", "U+200D"},                               // joiner at the start
		{"\u0645\u200d\u200d", "U+200D"},                         // two joiners
		{"\u044f\u200c\u043c", "U+200C"},                         // non-joiner between Cyrillic letters
		{"a\ufe0fb", "U+FE0F"},                                   // selector after a letter without variants
		{"\u2764\ufe0f\ufe0e", "U+FE0E"},                         // two selectors
		{"1\ufe0f", "U+FE0F"},                                    // a digit without a keycap
		{"a\u034fb", "U+034F"},                                   // grapheme joiner
		{"a\u3164", "U+3164"},                                    // Hangul filler
		{"\u115f\u1160", "U+115F"},                               // Hangul fillers
		{"a\uffa0b", "U+FFA0"},                                   // Hangul filler
		{"a\u17b4b", "U+17B4"},                                   // invisible Khmer vowel
		{"safe\u202egpj.exe", "U+202E"},                          // right-to-left override
		{"a\u202ab\u202c", "U+202A"},                             // left-to-right embedding
		{"a\u2066b\u2069", "U+2066"},                             // isolates
		{"a\u200fb", "U+200F"},                                   // right-to-left mark
		{"a\u061cb", "U+061C"},                                   // Arabic letter mark
		{"a\u200bb", "U+200B"},                                   // zero-width space
		{"a\u2060b", "U+2060"},                                   // word joiner
		{"\ufeffa", "U+FEFF"},                                    // byte order mark
		{"a\u00adb", "U+00AD"},                                   // soft hyphen
		{"a\U000e0041b", "U+E0041"},                              // tag
		{"a\u2028b", "U+2028"},                                   // line separator
		{"a\u2029b", "U+2029"},                                   // paragraph separator
		{"\u0645\u200c\u0645\u2067", "U+2067"},                   // an allowed non-joiner, then an isolate
	}
	for _, test := range tests {
		checkLabels := func(check func() error, param string) {
			t.Helper()
			err := check()
			if test.hidden == "" {
				if err != nil {
					t.Errorf("the text %q got the error %v, want it accepted", test.text, err)
				}
				return
			}
			wantFault(t, err, fault.InvalidRequest, param)
			if !strings.Contains(fault.Of(err).Message(), "("+test.hidden+")") || !strings.Contains(fault.Of(err).Message(), "Delete it") {
				t.Errorf("the text %q got the message %s, want one that names %s", test.text, fault.Of(err).Message(), test.hidden)
			}
		}
		checkLabels(func() error { return (&NewAccount{Name: test.text}).Check() }, "name")
		checkLabels(func() error { return (&Patch{Name: &test.text}).Check(Account{}) }, "name")
		checkLabels(func() error { return KeySettings{Name: test.text}.Check() }, "name")
		note := "first\n" + test.text + "\tlast"
		checkLabels(func() error { return (&Patch{Note: &note}).Check(Account{}) }, "note")
	}
}

// TestStoredInvisibleCharactersStayUsable checks that stored texts with invisible characters can be
// listed and sent back unchanged, and that the user can sign in.
func TestStoredInvisibleCharactersStayUsable(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const name, note, email = "safe\u202egpj", "a\u200bb\nc", "ada\u200b@example.com"
		passwords := NewPasswords()
		hash, err := passwords.Hash(t.Context(), "right horse")
		if err != nil {
			t.Fatal(err)
		}
		a, b := createAccount(t, db, "a"), createAccount(t, db, "b")
		k := createKey(t, db, a.ID, KeySettings{Name: "k"})
		last := createKey(t, db, a.ID, KeySettings{Name: "last"})
		u := update(t, db, func(tx *store.Tx) (User, error) {
			u, err := CreateUserTx(tx, a.ID, SignIn{Email: "ada@example.com", PasswordHash: hash})
			for text, args := range map[string][]any{
				`UPDATE account SET name = $1, note = $2, email = $3 WHERE id = $4`: {name, note, email, a.ID},
				`UPDATE api_key SET name = $1 WHERE id = $2`:                        {name, k.ID},
				`UPDATE account_user SET email = $1 WHERE id = $2`:                  {email, u.ID},
			} {
				if _, err := tx.Exec(text, args...); err != nil {
					return u, err
				}
			}
			return u, err
		})
		first, more := listAccounts(t, db, "", 1)
		rest, _ := listAccounts(t, db, first[0].ID, 1)
		names := map[string]string{first[0].ID: first[0].Name, rest[0].ID: rest[0].Name}
		if !more || !maps.Equal(names, map[string]string{a.ID: name, b.ID: "b"}) {
			t.Errorf("ListTx returned %+v, then %+v, want both accounts", first, rest)
		}
		keys := update(t, db, func(tx *store.Tx) ([]Key, error) { list, _, err := ListKeysTx(tx, a.ID, "", 10); return list, err })
		names = map[string]string{}
		for _, key := range keys {
			names[key.ID] = key.Name
		}
		if !maps.Equal(names, map[string]string{k.ID: name, last.ID: "last"}) {
			t.Errorf("ListKeysTx returned %+v, want both keys", keys)
		}

		// Sending a value back unchanged, as a form does, is not a change.
		floor := -money.USD
		changed := update(t, db, func(tx *store.Tx) (Account, error) {
			return ChangeTx(tx, a.ID, Patch{Name: ptr(name), Note: ptr(note), Floor: &floor, Disabled: ptr(false)})
		})
		if changed.Name != name || changed.Note != note || changed.Money.Floor != floor {
			t.Errorf("changed the account to %+v, want only the floor changed", changed)
		}
		disabled := update(t, db, func(tx *store.Tx) (Key, error) {
			return ChangeKeyTx(tx, k.ID, func(s *KeySettings) error {
				s.Disabled = true
				return s.Check()
			})
		})
		if !disabled.Ledger.Limits.Disabled || disabled.Name != name {
			t.Errorf("changed the key to %+v, want it disabled with its old name", disabled)
		}
		_, err = try(t, db, func(tx *store.Tx) (Account, error) { return ChangeTx(tx, b.ID, Patch{Name: ptr(name)}) })
		wantFault(t, err, fault.InvalidRequest, "name")
		_, err = try(t, db, func(tx *store.Tx) (Key, error) {
			return ChangeKeyTx(tx, k.ID, func(s *KeySettings) error { s.Name = "other\u202e"; return nil })
		})
		wantFault(t, err, fault.InvalidRequest, "name")

		e, addr := NewSignIns(db, passwords, nil), netip.MustParseAddr("192.0.2.1")
		if got, err := e.Password(t.Context(), " ADA\u200b@example.com", "right horse", addr); err != nil || got.ID != u.ID {
			t.Errorf("Password = %+v, %v, want user %s", got, err, u.ID)
		}
		disabledUser := changeUser(t, db, u.ID, UserChange{Email: ptr(email), Disabled: ptr(true)})
		if disabledUser.Email != email || !disabledUser.Disabled {
			t.Errorf("changed the user to %+v, want it disabled with its old email", disabledUser)
		}
	})
}

// FuzzRemoveInvisible checks that the result has no invisible character and is part of the text.
func FuzzRemoveInvisible(f *testing.F) {
	for _, text := range []string{"a", "a\u200d\ufe0fb", "\u202e\u202e", "\u0645\u200d\u200d\u0645", "\u2764\ufe0f\u200d\U0001f525",
		"1\ufe0f\u20e3", "\xff\u200d", "\xe2\u202e\x80\xae"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		visible := RemoveInvisible(text)
		if err := CheckVisible("name", visible); err != nil {
			t.Errorf("RemoveInvisible(%q) = %q, which has an invisible character: %v", text, visible, err)
		}
		if CheckVisible("name", text) == nil && utf8.ValidString(text) && visible != text {
			t.Errorf("RemoveInvisible(%q) = %q, want it unchanged", text, visible)
		}
	})
}
