package moderation

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
)

// limits are the limits of a model with a unit of its price.
type limits struct {
	kind.DefaultLimits
	unit kind.PriceUnit
}

// limitsOf returns the limits of a model that reads 3 inputs, with images of at most 100 tokens.
func limitsOf(unit kind.PriceUnit) limits {
	return limits{kind.DefaultLimits{Numbers: map[string]int64{maxInputs: 3, maxImageTokens: 100}}, unit}
}

func (l limits) Priced(unit kind.PriceUnit) bool { return unit == l.unit }

func check(body string, unit kind.PriceUnit) (*request, error) {
	opened, err := open([]byte(body))
	if err != nil {
		return nil, err
	}
	r := opened.(*request)
	return r, r.Check(limitsOf(unit))
}

// mustCheck returns the part of a valid request.
func mustCheck(t *testing.T, body string, unit kind.PriceUnit) *part {
	t.Helper()
	r, err := check(body, unit)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r.Parts(1)[0].(*part)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for input, param := range map[string]string{
		`"a"`:              "",
		`["a","","b"]`:     "",
		`"a","metadata":7`: "",
		`[{"type":"text","text":"a"},{"type":"text","text":""}]`:                      "",
		`[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`:      "",
		`[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"},"x":1}]`: "",
		`null`:                                   "input",
		`""`:                                     "input",
		`[]`:                                     "input",
		`7`:                                      "input",
		`{"type":"text","text":"a"}`:             "input",
		`["a","b","c","d"]`:                      "input",
		`[1]`:                                    "input[0]",
		`["a",null]`:                             "input[1]",
		`["a",["b"]]`:                            "input[1]",
		`["a",{"type":"text","text":"b"}]`:       "input[1]",
		`[{"type":"text","text":"b"},"a"]`:       "input[1]",
		`[{"type":"text"}]`:                      "input[0].text",
		`[{"type":"text","text":5}]`:             "input[0].text",
		`[{"text":"a"}]`:                         "input[0].type",
		`[{"type":"input_audio","text":"a"}]`:    "input[0].type",
		`[{"type":"image_url"}]`:                 "input[0].image_url",
		`[{"type":"image_url","image_url":"a"}]`: "input[0].image_url",
		`[{"type":"image_url","image_url":{}}]`:  "input[0].image_url.url",
		`[{"type":"image_url","image_url":{"url":""}}]`:          "input[0].image_url.url",
		`[{"type":"image_url","image_url":{"url":7}}]`:           "input[0].image_url.url",
		`[{"type":"image_url","image_url":{"url":"file:///a"}}]`: "input[0].image_url.url",
		`[{"type":"image_url","image_url":{"url":"QUJD"}}]`:      "input[0].image_url.url",
		`[{"type":"image_url","image_url":{"file_id":"f"}}]`:     "input[0].image_url.file_id",
		`"a","Model":"n"`:             "Model",
		`"a","conversation":"c"`:      "conversation",
		`"a","web_search_options":{}`: "web_search_options",
	} {
		_, err := check(`{"model":"m","input":`+input+`}`, kind.Input)
		switch f := fault.Of(err); {
		case param == "" && err != nil:
			t.Errorf("%s: got %v, want no error", input, err)
		case param != "" && (err == nil || f.Code != fault.InvalidRequest || f.Param != param):
			t.Errorf("%s: got %v at %q, want invalid_request at %q", input, err, f.Param, param)
		}
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"input":"a"}`: "", `{"model":null,"input":"a"}`: "", `{"model":"m","input":"a"}`: "m",
		`{"model":"","input":"a"}`: "model_not_found", `{"model":7,"input":"a"}`: "model_not_found",
	} {
		r, err := open([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Model()
		if err != nil {
			got = string(fault.Of(err).Code)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	r, err := check(`{"input":[{"type":"image_url","image_url":{"url":"https://10.0.0.1/a.png"}}]}`, kind.Input)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := r.CheckAddresses(func(address string) error { got = append(got, address); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != "https://10.0.0.1/a.png" {
		t.Errorf("checked the addresses %q, want the image's", got)
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	p := mustCheck(t, `{"input":["a","b"],"metadata":{},"unheard_of":1,"provider":{}}`, kind.Requests)
	if got := strings.Join(p.request.Unknown(), " "); got != "metadata unheard_of provider" {
		t.Errorf("unknown fields: got %q", got)
	}
	if got := strings.Join(p.request.Routing(), " "); got != "provider" {
		t.Errorf("routing fields: got %q", got)
	}
	body := p.Body("vendor", []string{"unheard_of", "provider"}).Bytes()
	if got, want := string(body), `{"input":["a","b"],"metadata":{},"model":"vendor"}`; got != want {
		t.Errorf("body: got %s, want %s", got, want)
	}
}

// TestCounts checks bounds and counts, and which of the provider's counts are charged.
func TestCounts(t *testing.T) {
	t.Parallel()
	const image = `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`
	for _, c := range []struct {
		input, usage   string
		unit           kind.PriceUnit
		bound, charged int64
		own            bool
	}{
		{`"hello"`, `{"prompt_tokens":13}`, kind.Input, 13, 13, false},
		{`"hello"`, `{"prompt_tokens":14}`, kind.Input, 13, 1, true},
		{`"hello"`, `{"total_tokens":5}`, kind.Input, 13, 5, false},
		{`"hello"`, `{"prompt_tokens":0}`, kind.Input, 13, 1, true},
		{`"hello"`, `{"prompt_tokens":-2}`, kind.Input, 13, 1, true},
		{`"hello"`, `{"prompt_tokens":"5"}`, kind.Input, 13, 1, true},
		{`"hello"`, `{"prompt_tokens":1e30}`, kind.Input, 13, 1, true},
		{`"hello"`, `{"seconds":5}`, kind.Input, 13, 1, true},
		{`"hello"`, `null`, kind.Input, 13, 1, true},
		{`["hello","\u00e9",""]`, `null`, kind.Input, 13 + 10 + 8, 2, true},
		{`[{"type":"text","text":"hello"},` + image + `,` + image + `]`, `null`, kind.Input, 13 + 200, 1 + 200, true},
		{`["hello","you"]`, `{"prompt_tokens":7}`, kind.Requests, 1, 1, true},
		{`["hello","you"]`, `null`, kind.Requests, 1, 1, true},
	} {
		p := mustCheck(t, `{"input":`+c.input+`}`, c.unit)
		reported, err := p.Read([]byte(`{"results":[{"flagged":false}],"usage":` + c.usage + `}`))
		if err != nil {
			t.Fatal(err)
		}
		used, _, own := kind.Believed(reported, p.Bound(), func() kind.Quantities { return p.Count(&wire.Counter{}) })
		if p.Bound()[c.unit] != c.bound || used[c.unit] != c.charged || len(used) != 1 || (own == 1) != c.own {
			t.Errorf("%s with usage %s: got a bound of %d and a charge of %v (own %d), want %d and %d (own %t)",
				c.input, c.usage, p.Bound()[c.unit], used, own, c.bound, c.charged, c.own)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"id":"modr-1","model":"vendor","results":[{"flagged":true,"categories":{"a":null}}],"usage":{"prompt_tokens":2}}`: `{"id":"modr-1",` +
			`"model":"mine","results":[{"flagged":true,"categories":{"a":null}}],"usage":{"prompt_tokens":2}}`,
		` {"results":[{"categories":{}}]}`: `{"results":[{"categories":{}}],"model":"mine"}`,
		`{"results":[]}`:                   "",
		`{"results":null}`:                 "",
		`{"results":{"flagged":false}}`:    "",
		`{"results":[true]}`:               "",
		`{"error":{"message":"no"}}`:       "",
		`[{"flagged":true}]`:               "",
		`<html>`:                           "",
		``:                                 "",
		`{"results":[{"flagged":true}`:     "",
	} {
		p := mustCheck(t, `{"input":"a"}`, kind.Requests)
		_, err := p.Read([]byte(answer))
		if (err != nil) != (want == "") {
			t.Errorf("%s: got error %v", answer, err)
		}
		if err != nil {
			continue
		}
		got := string(bytes.TrimSpace(bytes.Join(p.request.Answer([]kind.Part{p}, kind.Charged{Model: "mine"}), nil)))
		if got != want {
			t.Errorf("%s: got %s, want %s", answer, got, want)
		}
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	const image = `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`
	for input, want := range map[string][]bool{
		`"A film full of Violence."`: {true}, `"nonviolence"`: {false}, `["peace","violence",""]`: {false, true, false},
		`[{"type":"text","text":"peace"},` + image + `,{"type":"text","text":"violence"}]`: {true}, `[` + image + `]`: {false},
	} {
		raw, err := judge([]byte(`{"model":"m","input":` + input + `}`))
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID, Model string
			Results   []struct {
				Flagged    bool
				Categories map[string]bool
				Scores     map[string]float64 `json:"category_scores"`
			}
			Usage map[string]int64
		}
		if err := json.Unmarshal(raw, &answer); err != nil || answer.Model != "m" || len(answer.Results) != len(want) {
			t.Errorf("%s: %v, %s", input, err, raw)
			continue
		}
		for i, r := range answer.Results {
			if r.Flagged != want[i] || r.Categories["violence"] != want[i] || r.Scores["violence"] > 0.5 != want[i] || len(r.Categories) != 13 {
				t.Errorf("%s: result %d is %+v, want flagged %t", input, i, r, want[i])
			}
		}
	}
	if _, err := judge([]byte(`{"model":"m","input":""}`)); fault.Of(err).Param != "input" {
		t.Errorf("an empty text: %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:,"}}],"x":1e3}`))
	f.Add([]byte(`{"input":["a","\u0000"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		opened, err := open(body)
		if err != nil || opened.Check(limitsOf(kind.Input)) != nil {
			return
		}
		p := opened.Parts(0)[0]
		if bound, own := p.Bound()[kind.Input], p.Count(&wire.Counter{})[kind.Input]; own > bound {
			t.Errorf("%s: %d tokens of at most %d", body, own, bound)
		}
		if !json.Valid(p.Body("m", opened.Unknown()).Bytes()) {
			t.Errorf("%s: an invalid body for the line", body)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"results":[{"flagged":true}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"model":1,"model":2,"results":[{}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		r, err := check(`{"input":"a"}`, kind.Input)
		if err != nil {
			t.Fatal(err)
		}
		parts := r.Parts(0)
		if _, err := parts[0].Read(answer); err != nil {
			return
		}
		if out := bytes.Join(r.Answer(parts, kind.Charged{Model: "m"}), nil); !json.Valid(out) {
			t.Errorf("%s becomes %s", answer, out)
		}
	})
}
