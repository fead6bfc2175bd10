package mail

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/catalog/offer"
	"tollgate/internal/money"
)

func mustTexts(t *testing.T) texts {
	t.Helper()
	all, err := readTexts()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var placeholder = regexp.MustCompile(`\{[a-z_]*\}`)

// usedKeys returns the keys of all texts that mails use.
func usedKeys() []string {
	keys := []string{"footer", "contact", "choose"}
	for _, kind := range Kinds() {
		if reason := "reason." + kind.Topic().reason(); !slices.Contains(keys, reason) {
			keys = append(keys, reason)
		}
		keys = append(keys, string(kind)+".subject", string(kind)+".text")
		if kind.hasLink() {
			keys = append(keys, string(kind)+".action")
		}
	}
	keys = append(keys, "price_model", "price_above")
	for _, unit := range PriceUnits() {
		keys = append(keys, "price_unit."+unit)
	}
	for _, item := range offer.Items() {
		keys = append(keys, "price."+string(item))
	}
	slices.Sort(keys)
	return keys
}

// TestTextsAreComplete checks that each language has each used text and no other, with the same
// placeholders as in English.
func TestTextsAreComplete(t *testing.T) {
	t.Parallel()
	all, want := mustTexts(t), usedKeys()
	for locale, catalog := range all.byLocale {
		if got := slices.Sorted(maps.Keys(catalog)); !slices.Equal(got, want) {
			t.Errorf("%s has the texts %v, want %v", locale, got, want)
		}
		for key, text := range catalog {
			got, want := placeholder.FindAllString(text, -1), placeholder.FindAllString(all.byLocale[English][key], -1)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(slices.Compact(got), slices.Compact(want)) {
				t.Errorf("%s: %s has the placeholders %v, want those of English, %v", locale, key, got, want)
			}
		}
	}
}

// TestRender checks that values cannot add lines or HTML, that a missing text is an error, and that an
// unknown language is English.
func TestRender(t *testing.T) {
	t.Parallel()
	all := mustTexts(t)
	hostile := Options{Service: "Shop\r\nBcc: x@example.com <b>"}
	c, err := all.render(hostile, "", Letter{Kind: Test, To: "a@example.com", Locale: "xx",
		Link: "https://api.example.com/?a=1&b=2"})
	if err == nil {
		t.Errorf("a link without a label: got %q and no error", c.text)
	}
	if c, err = all.render(hostile, "", Letter{Kind: Test, To: "a@example.com", Locale: "xx"}); err != nil {
		t.Fatal(err)
	}
	if want := "A test mail from Shop  Bcc: x@example.com <b>"; c.subject != want {
		t.Errorf("the subject is %q, want %q", c.subject, want)
	}
	if strings.Contains(c.html, "<b>") || !strings.Contains(c.html, "&lt;b&gt;") {
		t.Errorf("the name of the service is not escaped in the HTML:\n%s", c.html)
	}
	if !strings.Contains(c.text, "\n\nAn operator asked for it.") {
		t.Errorf("the text has no second paragraph:\n%s", c.text)
	}
}

// TestRenderPrices checks the lines of changed prices in both forms and languages.
func TestRenderPrices(t *testing.T) {
	t.Parallel()
	all := mustTexts(t)
	l := Letter{Kind: PriceChange, To: "a@example.com", AccountName: "Acme", Link: "https://shop.example/",
		Values: map[string]string{"time": "T"},
		Prices: []ModelPrices{{Model: "swift-1", Unit: "million_tokens", Changes: []PriceRow{{Item: "input", Before: "$1.00", After: "$1.50"},
			{Item: "output", Tokens: "200000", Before: "$2.00"}}},
			{Model: "<b>", Unit: "page", Changes: []PriceRow{{Item: "other", Name: "2K", After: "$3.00"}}}}}
	for locale, want := range map[Locale][]string{
		English: {"swift-1, US dollars per million tokens\nInput: $1.00 → $1.50\nOutput, prompts above 200000 tokens: $2.00 → –\n\n",
			"<b>, US dollars per page\n2K: – → $3.00\n\nRequests sent"},
		Chinese: {"swift-1，每百万 Token（美元）\n输入: $1.00 → $1.50\n"},
	} {
		l.Locale = locale
		c, err := all.render(Options{Service: "Shop"}, "", l)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			first, _, _ := strings.Cut(w, "\n\n") // a paragraph
			if !strings.Contains(c.text, w) || !strings.Contains(html.UnescapeString(c.html), strings.TrimSpace(first)) {
				t.Errorf("%s: no %q in\n%s\n%s", locale, w, c.text, c.html)
			}
		}
		if strings.Contains(c.html, "<b>") {
			t.Errorf("the name of a model is not escaped: %s", c.html)
		}
	}
}

// TestLocaleOf checks that the language of a mail is the reader's first one that has texts.
func TestLocaleOf(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]Locale{
		"": English, "de-DE,de;q=0.9": English, "en-GB,zh;q=0.5": English, "zh-CN,zh;q=0.9,en;q=0.8": Chinese, "zh": Chinese,
		"fr;q=0.9,zh-Hans;q=0.8": Chinese, "\x00;;": English,
	} {
		if got := LocaleOf(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// TestFooter checks that each mail says why it came, and that exactly the mails of topics with a choice
// link to the preferences.
func TestFooter(t *testing.T) {
	t.Parallel()
	all := mustTexts(t)
	const preferences = "https://api.example.com" + preferencesPath
	for _, kind := range Kinds() {
		for _, locale := range Locales() {
			l := Letter{Kind: kind, To: "a@example.com", Locale: locale, AccountName: "Acme"}
			if kind.hasLink() {
				l.Link = "https://api.example.com/x"
			}
			c, err := all.render(Options{Service: "Shop", Contact: "help@shop.example", Color: "#aa3300"}, preferences, l)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Contains(ChoosableTopics(), kind.Topic())
			if got := strings.Contains(c.text, preferences); got != want {
				t.Errorf("%s in %s: the text has a link to the preferences: %v, want %v:\n%s", kind, locale, got, want, c.text)
			}
			if got := strings.Contains(c.html, `href="`+preferences+`"`); got != want {
				t.Errorf("%s in %s: the HTML has a link to the preferences: %v, want %v:\n%s", kind, locale, got, want, c.html)
			}
			if reason := all.byLocale[locale]["reason."+kind.Topic().reason()]; reason == "" {
				t.Errorf("%s in %s: no reason", kind, locale)
			}
		}
	}
}

// TestUSD checks the rounding of amounts.
func TestUSD(t *testing.T) {
	for amount, want := range map[money.Amount]string{0: "$0.00", 4_999_999: "$0.00", 5_000_000: "$0.01", -4_999_999: "$0.00",
		-5_000_000: "-$0.01", 16_399_987_700: "$16.40", -1_999_000_000: "-$2.00", 1_234_000_000: "$1.23"} {
		if got := USD(amount); got != want {
			t.Errorf("%s: got %s, want %s", amount, got, want)
		}
	}
}
