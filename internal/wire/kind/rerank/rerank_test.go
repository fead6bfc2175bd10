package rerank

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// limitsOf returns the limits of a model for a number of documents.
func limitsOf(unit kind.PriceUnit, documents int64) limits {
	return limits{kind.DefaultLimits{Numbers: map[string]int64{maxDocuments: documents}}, unit}
}

func (l limits) Priced(unit kind.PriceUnit) bool { return unit == l.unit }

func check(body string, unit kind.PriceUnit) (*request, error) {
	opened, err := open([]byte(body))
	if err != nil {
		return nil, err
	}
	r := opened.(*request)
	documents := int64(3)
	if unit == Searches {
		documents = 1000
	}
	return r, r.Check(limitsOf(unit, documents))
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
	for body, param := range map[string]string{
		`{"model":"m","query":"q","documents":["a"]}`:                                           "",
		`{"model":"m","query":"q","documents":["a",{"text":""},{"text":"b","id":1}],"top_n":9}`: "",
		`{"model":"m","query":"q","documents":["a"],"top_n":null,"return_documents":null}`:      "",
		`{"model":"m","query":"q","documents":["a"],"return_documents":true,"unheard_of":1}`:    "",
		`{"model":"m","documents":["a"]}`:                                                       "query",
		`{"model":"m","query":"","documents":["a"]}`:                                            "query",
		`{"model":"m","query":["q"],"documents":["a"]}`:                                         "query",
		`{"model":"m","query":"q"}`:                                                             "documents",
		`{"model":"m","query":"q","documents":"a"}`:                                             "documents",
		`{"model":"m","query":"q","documents":{"text":"a"}}`:                                    "documents",
		`{"model":"m","query":"q","documents":[]}`:                                              "documents",
		`{"model":"m","query":"q","documents":["a","b","c","d"]}`:                               "documents",
		`{"model":"m","query":"q","documents":["a",null]}`:                                      "documents[1]",
		`{"model":"m","query":"q","documents":[["a"]]}`:                                         "documents[0]",
		`{"model":"m","query":"q","documents":["a",{"title":"b"}]}`:                             "documents[1].text",
		`{"model":"m","query":"q","documents":[{"text":5}]}`:                                    "documents[0].text",
		`{"model":"m","query":"q","documents":["a"],"top_n":0}`:                                 "top_n",
		`{"model":"m","query":"q","documents":["a"],"top_n":1.5}`:                               "top_n",
		`{"model":"m","query":"q","documents":["a"],"top_n":"1"}`:                               "top_n",
		`{"model":"m","query":"q","documents":["a"],"return_documents":"yes"}`:                  "return_documents",
		`{"model":"m","Query":"q","query":"q","documents":["a"]}`:                               "Query",
		`{"model":"m","query":"q","documents":["a"],"conversation":"c"}`:                        "conversation",
		`{"model":"m","query":"q","documents":["a"],"web_search_options":{}}`:                   "web_search_options",
		`{"model":"m","query":"q","documents":[{"text":"a","file_id":"f"}]}`:                    "documents[0].file_id",
	} {
		_, err := check(body, kind.Input)
		switch f := fault.Of(err); {
		case param == "" && err != nil:
			t.Errorf("%s: got %v, want no error", body, err)
		case param != "" && (err == nil || f.Code != fault.InvalidRequest || f.Param != param):
			t.Errorf("%s: got %v at %q, want invalid_request at %q", body, err, f.Param, param)
		}
	}
}

func TestBody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"m","query":"q","documents":["a","b"],"top_n":1,"return_documents":true,"x":1}`: `{"model":"vendor","query":"q",` +
			`"documents":["a","b"],"top_n":1}`,
		`{"return_documents":null,"documents":["a",{"id":7,"text":"b\n"}],"query":"q","model":"m","instruct":"i"}`: `{"documents":["a","b\n"],` +
			`"query":"q","model":"vendor","instruct":"i"}`,
	} {
		p := mustCheck(t, body, Searches)
		if got := string(p.Body("vendor", []string{"x"}).Bytes()); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	p := mustCheck(t, `{"model":"m","query":"q","documents":["a"],"instruct":"i","unheard_of":1,"provider":{}}`, Searches)
	if got := strings.Join(p.request.Unknown(), " "); got != "instruct unheard_of provider" {
		t.Errorf("unknown fields: got %q", got)
	}
}

// texts returns a list of n texts of size bytes.
func texts(n, size int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = `"` + strings.Repeat("x", size) + `"`
	}
	return "[" + strings.Join(list, ",") + "]"
}

// TestCounts checks bounds and counts, and which of the provider's counts are charged.
func TestCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		documents, answer string
		unit              kind.PriceUnit
		bound, charged    int64
		own               bool
	}{
		{`["hello","you"]`, `"meta":{"billed_units":{"search_units":1}}`, Searches, 1, 1, false},
		{`["hello","you"]`, `"meta":{"billed_units":{"search_units":2}}`, Searches, 1, 1, true},
		{`["hello","you"]`, `"meta":{"billed_units":{"search_units":0}}`, Searches, 1, 1, true},
		{`["hello","you"]`, `"meta":{"billed_units":{"search_units":-1}}`, Searches, 1, 1, true},
		{`["hello","you"]`, `"meta":{"billed_units":{"search_units":"1"}}`, Searches, 1, 1, true},
		{`["hello","you"]`, `"usage":{"total_tokens":1}`, Searches, 1, 1, true},
		{texts(100, 496), `"meta":{"billed_units":{"search_units":1.0}}`, Searches, 1, 1, false},
		{texts(100, 497), `"meta":{"billed_units":{"search_units":2}}`, Searches, 2, 2, false},
		{texts(101, 1), `"meta":null`, Searches, 2, 2, true},
		{texts(100, 1000), `"meta":{"billed_units":{"search_units":3}}`, Searches, 3, 3, false},
		{texts(100, 1000), `"meta":{}`, Searches, 3, 1, true},
		{`["hello","you"]`, `"meta":{"billed_units":{"input_tokens":48}}`, kind.Input, 48, 48, false},
		{`["hello","you"]`, `"meta":{"billed_units":{"input_tokens":7}},"usage":{"total_tokens":9}`, kind.Input, 48, 7, false},
		{`["hello","you"]`, `"meta":{"billed_units":{"input_tokens":null}},"usage":{"total_tokens":9}`, kind.Input, 48, 9, false},
		{`["hello","you"]`, `"usage":{"prompt_tokens":6}`, kind.Input, 48, 6, false},
		{`["hello","you"]`, `"usage":{"total_tokens":49}`, kind.Input, 48, 4, true},
		{`["hello","you"]`, `"usage":{"total_tokens":0,"prompt_tokens":9}`, kind.Input, 48, 4, true},
		{`["hello","you"]`, `"meta":{"billed_units":{"search_units":1}}`, kind.Input, 48, 4, true},
		{`["hello","you"]`, `"usage":null`, kind.Input, 48, 4, true},
	} {
		p := mustCheck(t, `{"model":"m","query":"what","documents":`+c.documents+`}`, c.unit)
		reported, err := p.Read([]byte(`{"results":[{"index":0,"relevance_score":1}],` + c.answer + `}`))
		if err != nil {
			t.Fatal(err)
		}
		used, _, own := kind.Believed(reported, p.Bound(), func() kind.Quantities { return p.Count(&wire.Counter{}) })
		if p.Bound()[c.unit] != c.bound || used[c.unit] != c.charged || len(used) != 1 || (own == 1) != c.own {
			t.Errorf("%.40s with %s: got a bound of %v and a charge of %v (own %d), want %d and %d (own %t)",
				c.documents, c.answer, p.Bound(), used, own, c.bound, c.charged, c.own)
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	const two = `"results":[{"index":1,"relevance_score":0.25,"document":{"text":"no"}},{"index":0,"relevance_score":9e-1}]`
	const sorted = `"results":[{"index":0,"relevance_score":9e-1},{"index":1,"relevance_score":0.25}]`
	for _, c := range []struct {
		fields, answer string
		used           kind.Quantities
		want           string // or empty for an incomplete answer
	}{
		{``, `{"id":"x",` + two + `,"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1,"other":2}},"model":"v"}`,
			kind.Quantities{Searches: 1},
			`{"id":"x",` + sorted + `,"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}},"model":"mine"}`},
		{`,"top_n":1`, `{"data":[{"index":1,"relevance_score":1},{"index":0,"relevance_score":2}],"object":"list","usage":{"total_tokens":4}}`,
			kind.Quantities{kind.Input: 4},
			`{"usage":{"total_tokens":4},"id":"req","model":"mine","results":[{"index":0,"relevance_score":2}],` +
				`"meta":{"billed_units":{"input_tokens":4}}}`},
		{`,"return_documents":true`, `{"id":"",` + two + `}`, kind.Quantities{Searches: 1},
			`{"id":"req","results":[{"index":0,"relevance_score":9e-1,"document":{"text":"a"}},` +
				`{"index":1,"relevance_score":0.25,"document":{"id":7,"text":"b"}}],"model":"mine","meta":{"billed_units":{"search_units":1}}}`},
		{``, `{"id":"x",` + two + `,"usage":{"prompt_tokens":5,"cost":1}}`, kind.Quantities{Searches: 1},
			`{"id":"x",` + sorted + `,"usage":{"prompt_tokens":5,"cost":1,"total_tokens":5},"model":"mine",` +
				`"meta":{"billed_units":{"search_units":1}}}`},
		{``, `{"id":"x",` + two + `,"meta":{"billed_units":{"input_tokens":8}},"usage":null}`, kind.Quantities{kind.Input: 8},
			`{"id":"x",` + sorted + `,"meta":{"billed_units":{"input_tokens":8}},"usage":{"total_tokens":8},"model":"mine"}`},
		{``, `{"id":"x",` + two + `}`, kind.Quantities{kind.Input: 4},
			`{"id":"x",` + sorted + `,"model":"mine","meta":{"billed_units":{"input_tokens":4}},"usage":{"total_tokens":4}}`},
		{``, `{"id":"x",` + two + `,"usage":{"total_tokens":0}}`, kind.Quantities{kind.Input: 4},
			`{"id":"x",` + sorted + `,"usage":{"total_tokens":0},"model":"mine","meta":{"billed_units":{"input_tokens":4}}}`},
		{`,"top_n":1`, `{"results":[{"index":0,"score":-1.5},{"index":1,"score":0.5}]}`, kind.Quantities{Searches: 1},
			`{"results":[{"index":1,"relevance_score":0.5}],"id":"req","model":"mine","meta":{"billed_units":{"search_units":1}}}`},
		{``, `{"results":[]}`, nil, ""},
		{``, `{"results":[{"index":2,"relevance_score":1}]}`, nil, ""},
		{``, `{"results":[{"index":-1,"relevance_score":1}]}`, nil, ""},
		{``, `{"results":[{"relevance_score":1}]}`, nil, ""},
		{``, `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":2}]}`, nil, ""},
		{``, `{"results":[{"index":0,"relevance_score":"1"}]}`, nil, ""},
		{``, `{"results":[{"index":0}]}`, nil, ""},
		{``, `{"results":[1]}`, nil, ""},
		{``, `[{"index":0,"relevance_score":1}]`, nil, ""},
		{``, `<html>`, nil, ""},
		{``, `{"results":[{"index":0,"relevance_score":1}]`, nil, ""},
	} {
		p := mustCheck(t, `{"model":"m","query":"q","documents":["a",{"id":7,"text":"b"}]`+c.fields+`}`, Searches)
		_, err := p.Read([]byte(c.answer))
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: got error %v", c.answer, err)
		}
		if err != nil {
			continue
		}
		answer := p.request.Answer([]kind.Part{p}, kind.Charged{Request: "req", Model: "mine", Used: c.used})
		got := string(bytes.TrimSpace(bytes.Join(answer, nil)))
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.answer, got, c.want)
		}
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	raw, err := scores([]byte(`{"model":"m","query":"Red car","documents":["blue car","nothing",{"text":"a red, RED car"},"red car"],` +
		`"top_n":3}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		ID, Model string
		Results   []struct {
			Index int
			Score float64 `json:"relevance_score"`
		}
		Usage map[string]int64
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("%v, %s", err, raw)
	}
	var order []int
	for _, r := range answer.Results {
		order = append(order, r.Index)
	}
	if fmt.Sprint(order) != "[3 2 0]" || answer.Results[0].Score != 1 || answer.ID == "" || answer.Usage["total_tokens"] == 0 {
		t.Errorf("got %s, want the documents 3, 2 and 0", raw)
	}
	if _, err := scores([]byte(`{"model":"m","query":"","documents":["a"]}`)); fault.Of(err).Param != "query" {
		t.Errorf("an empty query: %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","query":"q","documents":["a",{"text":"\u0000"}],"top_n":1,"return_documents":true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, unit := range []kind.PriceUnit{Searches, kind.Input} {
			opened, err := open(body)
			if err != nil || opened.Check(limitsOf(unit, 100)) != nil {
				return
			}
			p := opened.Parts(0)[0]
			if bound, own := p.Bound()[unit], p.Count(&wire.Counter{})[unit]; own > bound {
				t.Errorf("%s: %d %s of at most %d", body, own, unit, bound)
			}
			if !json.Valid(p.Body("m", opened.Unknown()).Bytes()) {
				t.Errorf("%s: an invalid body for the line", body)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"results":[{"index":0,"relevance_score":1},{"index":1,"relevance_score":-1e9}],"meta":[],"usage":{"total_tokens":1}}`))
	f.Add([]byte(`{"id":1,"data":[{"index":1,"relevance_score":1}],"data":2,"usage":{},"usage":1}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		r, err := check(`{"model":"m","query":"q","documents":["a",{"text":"b"}],"return_documents":true}`, kind.Input)
		if err != nil {
			t.Fatal(err)
		}
		parts := r.Parts(0)
		if _, err := parts[0].Read(answer); err != nil {
			return
		}
		if out := bytes.Join(r.Answer(parts, kind.Charged{Model: "m", Used: kind.Quantities{kind.Input: 1}}), nil); !json.Valid(out) {
			t.Errorf("%s becomes %s", answer, out)
		}
	})
}
