package importer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog"
)

// told is a price as short as it can be told: of each step the length of the prompt above
// which it holds, and US dollars a million tokens of the prompt, the answer, what the cache
// had, and what was written into it, for minutes and for an hour.
func told(p catalog.ChatPrice) string {
	tell := func(above int64, r catalog.Rates) string {
		return fmt.Sprintf("%d: %s %s %s %s %s", above, r.Input, r.Output, r.CachedInput, r.CacheWrite, r.CacheWrite1h)
	}
	all := []string{tell(0, p.Rates)}
	for _, a := range p.Above {
		all = append(all, tell(a.PromptTokens, a.Rates))
	}
	return strings.Join(all, "; ")
}

// TestExpressions: newer versions of new-api price by an expression. What it says of tokens
// by the length of the prompt is carried over exactly, and anything else is not guessed.
func TestExpressions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`tier("base", p * 2.5 + c * 15 + cr * 0.25)`:                              "0: 2.5 15 0.25 2.5 2.5",
		`v1:p * 3 + 15 * c`:                                                       "0: 3 15 3 3 3",
		`tier("base", (p) * 3 + c * 15 + cr * 0.3 + cc * 3.75 + cc1h * 6)`:        "0: 3 15 0.3 3.75 6",
		`len <= 200000 ? tier("a", p*3 + c*15) : tier("b: long", p*6 + c*22.5)`:   "0: 3 15 3 3 3; 200000: 6 22.5 6 6 6",
		`len < 200000 ? tier("a", p*3 + c*15) : tier("b", p*6 + c*22.5 + cr*0.6)`: "0: 3 15 3 3 3; 199999: 6 22.5 0.6 6 6",
		`len > 1000 ? (p*6 + c*7) : (p*3 + c*4)`:                                  "0: 3 4 3 3 3; 1000: 6 7 6 6 6",
		`len >= 9 ? p*2 + c*2 : len > 4 ? p*1 + c*1 : p*0 + c*0`:                  "0: 0 0 0 0 0; 4: 1 1 1 1 1; 8: 2 2 2 2 2",
		`len <= 5 ? p*1 + c*1 : len <= 3 ? p*8 + c*8 : p*2 + c*2`:                 "0: 1 1 1 1 1; 5: 2 2 2 2 2",

		`tier("base", p * 2 + c * 8 + img * 2.5)`:                                "",
		`tier("request", fixed(0.01))`:                                           "",
		`(tier("base", p * 5 + c * 25)) * (param("x") == "fast" ? 6 : 1)`:        "",
		`tier("base", p * 5 + c * 25)|||when(header("x") has "fast") * 6`:        "",
		`len < 32000 && c < 200 ? tier("a", p * 1 + c * 2) : tier("b", p*2+c*3)`: "",
		`p > 1000 ? tier("a", p * 1 + c * 2) : tier("b", p * 2 + c * 3)`:         "",
		`v2:(tier("base", p * 2.5 + c * 15)) / 1000000`:                          "",
		`tier("base", p * 2 + p * 3 + c * 1)`:                                    "",
		`tier("base", p * -2 + c * 1)`:                                           "",
		`tier("base", p * c)`:                                                    "",
		`tier("base, p * 2`:                                                      "",
		`p`:                                                                      "",
		``:                                                                       "",
		strings.Repeat("len > 1 ? p*1 : ", 500) + "p*1":                          "",
		strings.Repeat("(", 5000) + "p*1":                                        "",
	} {
		r, err := readExpression(text)
		got := ""
		if err == nil {
			m, fits := chatModel("m", r, facts{})
			if got = told(m.Price); !fits {
				t.Errorf("%s is out of range", text)
			}
		}
		if got != want {
			t.Errorf("%.80s: %q, want %q (%v)", text, got, want, err)
		}
	}
}

// FuzzExpression: whatever stands there, it is read to an end, and steps ascend.
func FuzzExpression(f *testing.F) {
	f.Add(`len <= 200000 ? tier("a", p*3 + c*15 + cc1h*6) : (len > 300000 ? p*6 : p*5)`)
	f.Add(`v1:tier("x", (p) * 1.5 + 2 * c)`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := readExpression(text)
		if err != nil {
			return
		}
		if r.input == nil || r.output == nil {
			t.Error("a price without rates")
		}
		if !slices.IsSortedFunc(r.above, func(a, b ratesAbove) int { return int(min(max(a.tokens-b.tokens, -1), 1)) }) {
			t.Errorf("%v", r.above)
		}
	})
}
