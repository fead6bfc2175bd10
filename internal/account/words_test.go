package account

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
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
		if again, err := ParseEmail(got); err != nil || again != got {
			t.Errorf("%q became %q, and that %q, %v", text, got, again, err)
		}
		if strings.ContainsAny(got, "\x00\r\n ") {
			t.Errorf("%q became %q", text, got)
		}
	})
}
