package embedding

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
)

// model is a model that reads 3 inputs of at most 20 tokens.
var model = kind.DefaultLimits{Kind: Definition(), Numbers: map[string]int64{maxInputs: 3, maxInputTokens: 20, dimensions: 8}}

func check(body string) (*request, error) {
	opened, err := open([]byte(body))
	if err != nil {
		return nil, err
	}
	r := opened.(*request)
	return r, r.Check(model)
}

// mustCheck returns a valid request.
func mustCheck(t *testing.T, body string) *request {
	t.Helper()
	r, err := check(body)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		`{"model":"m","input":"a"}`:                               "",
		`{"model":"m","input":["a","b","c"],"user":null}`:         "",
		`{"model":"m","input":[1,2,3,4,5]}`:                       "",
		`{"model":"m","input":[[1],[2,0]]}`:                       "",
		`{"model":"m","input":"a","dimensions":8,"unheard_of":1}`: "",
		`{"model":"m","input":"a","encoding_format":"base64"}`:    "",
		`{"model":"m","input":"a","dimensions":null}`:             "",
		`{"model":"m","input":"a","input_type":"query"}`:          "",
		`{"model":"m"}`:                                                       "input",
		`{"model":"m","input":null}`:                                          "input",
		`{"model":"m","input":""}`:                                            "input",
		`{"model":"m","input":[]}`:                                            "input",
		`{"model":"m","input":7}`:                                             "input",
		`{"model":"m","input":{"text":"a"}}`:                                  "input",
		`{"model":"m","input":["a","b","c","d"]}`:                             "input",
		`{"model":"m","input":["a","","c"]}`:                                  "input[1]",
		`{"model":"m","input":["a","b",1]}`:                                   "input[2]",
		`{"model":"m","input":["a",["b"]]}`:                                   "input[1]",
		`{"model":"m","input":["a",null]}`:                                    "input[1]",
		`{"model":"m","input":[null]}`:                                        "input[0]",
		`{"model":"m","input":[true]}`:                                        "input[0]",
		`{"model":"m","input":[1,"a"]}`:                                       "input[1]",
		`{"model":"m","input":[1,-1]}`:                                        "input[1]",
		`{"model":"m","input":[1,1.5]}`:                                       "input[1]",
		`{"model":"m","input":[[1],[]]}`:                                      "input[1]",
		`{"model":"m","input":[[1],["a"]]}`:                                   "input[1][0]",
		`{"model":"m","input":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1]}`:   "input",
		`{"model":"m","input":[[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1]]}`: "input[0]",
		`{"model":"m","input":"a","dimensions":9}`:                            "dimensions",
		`{"model":"m","input":"a","dimensions":0}`:                            "dimensions",
		`{"model":"m","input":"a","dimensions":"8"}`:                          "dimensions",
		`{"model":"m","input":"a","dimensions":1.5}`:                          "dimensions",
		`{"model":"m","input":"a","encoding_format":"hex"}`:                   "encoding_format",
		`{"model":"m","input":"a","encoding_format":1}`:                       "encoding_format",
		`{"model":"m","Input":"a","input":"a"}`:                               "Input",
		`{"model":"m","input":"a","conversation":"c"}`:                        "conversation",
		`{"model":"m","input":"a","web_search_options":{}}`:                   "web_search_options",
		`{"model":"m","input":"a","file_id":"f"}`:                             "file_id",
	} {
		_, err := check(body)
		switch f := fault.Of(err); {
		case param == "" && err != nil:
			t.Errorf("%s: got %v, want no error", body, err)
		case param != "" && (err == nil || f.Code != fault.InvalidRequest || f.Param != param):
			t.Errorf("%s: got %v at %q, want invalid_request at %q", body, err, f.Param, param)
		}
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	r := mustCheck(t, `{"model":"m","input":"a","user":"u","input_type":"query","unheard_of":1,"provider":{"only":["x"]}}`)
	if got := strings.Join(r.Unknown(), " "); got != "input_type unheard_of provider" {
		t.Errorf("unknown fields: got %q", got)
	}
	if got := strings.Join(r.Routing(), " "); got != "provider" {
		t.Errorf("routing fields: got %q", got)
	}
	body := r.Parts(0)[0].Body("vendor", []string{"unheard_of", "provider"}).Bytes()
	if got, want := string(body), `{"model":"vendor","input":"a","user":"u","input_type":"query"}`; got != want {
		t.Errorf("body: got %s, want %s", got, want)
	}
}

// TestBound checks the highest possible and the gateway's own counts.
func TestBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		input      string
		bound, own int64
	}{
		{`"hello"`, 13, 1},
		{`"\u4e2d"`, 11, 1},                      // three bytes
		{`["hello","hello hello hello"]`, 33, 4}, // 13, and at most 20
		{`[5,6,7]`, 11, 3},
		{`[[5,6,7],[1]]`, 20, 4},
	} {
		p := mustCheck(t, `{"model":"m","input":`+c.input+`}`).Parts(0)[0]
		if got := p.Bound()[kind.Input]; got != c.bound {
			t.Errorf("%s: bound %d, want %d", c.input, got, c.bound)
		}
		if got := p.Count(&wire.Counter{})[kind.Input]; got != c.own {
			t.Errorf("%s: own count %d, want %d", c.input, got, c.own)
		}
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ input, want string }{
		{`["a","b"]`, `["a","b"]`},
		{`["a","b","c"]`, `["a","b"] ["c"]`},
		{`[[1],[2,3],[4]]`, `[[1],[2,3]] [[4]]`},
		{`[1,2,3,4]`, `[1,2,3,4]`},
	} {
		var got []string
		for _, p := range mustCheck(t, `{"model":"m","input":`+c.input+`}`).Parts(2) {
			var body struct{ Input json.RawMessage }
			if err := json.Unmarshal(p.Body("m", nil).Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			got = append(got, string(body.Input))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %s, want %s", c.input, got, c.want)
		}
	}
}

// packed returns floats in base64.
func packed(values ...float32) string {
	var out []byte
	for _, v := range values {
		bits := math.Float32bits(v)
		out = append(out, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return base64.StdEncoding.EncodeToString(out)
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	half := packed(0.5, -2)
	const list = `{"object":"embedding","index":0,"embedding":[0.50, 1e-3]},{"object":"embedding","index":1,"embedding":[1]}`
	// answer returns an answer with the vectors as elements of data.
	answer := func(ours string, vectors ...string) string {
		var data []string
		for i, v := range vectors {
			data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, v))
		}
		return `{"object":"list","data":[` + strings.Join(data, ",") + `]` + ours + `}`
	}
	const usageFirst = `,"usage":{"prompt_tokens":7,"total_tokens":7},"model":"mine"`
	const modelFirst = `,"model":"mine","usage":{"prompt_tokens":7,"total_tokens":7}`
	for name, c := range map[string]struct {
		request string
		limit   int64
		answers []string
		want    string // or empty for an incomplete answer
		counts  string // reported
	}{
		"as it came": {`{"model":"m","input":["a","b"]}`, 0,
			[]string{`{"object":"list","id":"x","data":[` + list + `],"model":"vendor","usage":{"prompt_tokens":2,"cost":1}}`},
			`{"object":"list","id":"x","data":[` + list + `],"model":"mine","usage":{"prompt_tokens":2,"cost":1}}`, "2"},
		"in order, without usage": {`{"model":"m","input":["a","b"]}`, 0,
			[]string{`{"object":"list","data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}]}`},
			answer(modelFirst, "[1]", "[2]"), "none"},
		"total only": {`{"model":"m","input":"a"}`, 0,
			[]string{`{"object":"list","data":[{"index":0,"embedding":[1]}],"usage":{"total_tokens":3}}`},
			`{"object":"list","data":[{"index":0,"embedding":[1]}],"usage":{"total_tokens":3},"model":"mine"}`, "3"},
		"no index": {`{"model":"m","input":"a"}`, 0,
			[]string{`{"object":"list","data":[{"embedding":[1]}],"usage":{"prompt_tokens":0}}`},
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"usage":{"prompt_tokens":0},"model":"mine"}`, "0"},
		"base64 to floats": {`{"model":"m","input":"a"}`, 0,
			[]string{`{"object":"list","data":[{"index":0,"embedding":"` + half + `"}]}`},
			answer(modelFirst, "[0.5,-2]"), "none"},
		"floats to base64": {`{"model":"m","input":"a","encoding_format":"base64"}`, 0,
			[]string{`{"object":"list","data":[{"index":0,"embedding":[0.5,-2]}]}`},
			answer(modelFirst, `"`+half+`"`), "none"},
		"in parts": {`{"model":"m","input":["a","b","c"]}`, 2,
			[]string{`{"object":"list","data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":4}}`,
				`{"object":"list","data":[{"index":0,"embedding":[3]}],"usage":{"prompt_tokens":3}}`},
			answer(usageFirst, "[1]", "[2]", "[3]"), "4 3"},
		"too few": {`{"model":"m","input":["a","b"]}`, 0, []string{`{"data":[{"index":0,"embedding":[1]}]}`}, "", ""},
		"twice": {`{"model":"m","input":["a","b"]}`, 0,
			[]string{`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`}, "", ""},
		"too many": {`{"model":"m","input":"a"}`, 0,
			[]string{`{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`}, "", ""},
		"empty vector":    {`{"model":"m","input":"a"}`, 0, []string{`{"data":[{"index":0,"embedding":[]}]}`}, "", ""},
		"words":           {`{"model":"m","input":"a"}`, 0, []string{`{"data":[{"index":0,"embedding":["x"]}]}`}, "", ""},
		"broken base64":   {`{"model":"m","input":"a"}`, 0, []string{`{"data":[{"index":0,"embedding":"abc"}]}`}, "", ""},
		"no vector":       {`{"model":"m","input":"a"}`, 0, []string{`{"data":[{"index":0}]}`}, "", ""},
		"no data":         {`{"model":"m","input":"a"}`, 0, []string{`{"data":null}`}, "", ""},
		"no JSON":         {`{"model":"m","input":"a"}`, 0, []string{`<html>`}, "", ""},
		"an empty answer": {`{"model":"m","input":"a"}`, 0, []string{``}, "", ""},
		"broken off":      {`{"model":"m","input":"a"}`, 0, []string{`{"data":[{"index":0,"embedding":[1]}]`}, "", ""},
	} {
		r := mustCheck(t, c.request)
		parts := r.Parts(c.limit)
		var counts []string
		var err error
		for i, p := range parts {
			var reported kind.Quantities
			if reported, err = p.Read([]byte(c.answers[i])); err != nil {
				break
			}
			count := "none"
			if n, ok := reported[kind.Input]; ok {
				raw, _ := json.Marshal(n)
				count = string(raw)
			}
			counts = append(counts, count)
		}
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: got no error", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := string(bytes.TrimSpace(bytes.Join(r.Answer(parts, kind.Charged{Model: "mine", Used: kind.Quantities{kind.Input: 7}}), nil)))
		if got != c.want || strings.Join(counts, " ") != c.counts {
			t.Errorf("%s: got\n%s\nwant\n%s\ncounts %s, want %s", name, got, c.want, counts, c.counts)
		}
	}
}

// TestBelieved checks which counts are charged.
func TestBelieved(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]int64{
		`{"prompt_tokens":9}`: 9, `{"prompt_tokens":13}`: 13, `{"prompt_tokens":14}`: 1, `{"prompt_tokens":0}`: 1, `{"prompt_tokens":-4}`: 1,
		`{"prompt_tokens":"9"}`: 1, `{"prompt_tokens":1e30}`: 1, `{}`: 1, `null`: 1, `{"total_tokens":5}`: 5,
		`{"prompt_tokens":null,"total_tokens":5}`: 5,
		`{"search_units":3}`:                      1,
	} {
		p := mustCheck(t, `{"model":"m","input":"hello"}`).Parts(0)[0]
		reported, err := p.Read([]byte(`{"data":[{"index":0,"embedding":[1]}],"usage":` + usage + `}`))
		if err != nil {
			t.Fatal(err)
		}
		used, _, own := kind.Believed(reported, p.Bound(), func() kind.Quantities { return p.Count(&wire.Counter{}) })
		if used[kind.Input] != want || (own == 1) != (want == 1) {
			t.Errorf("usage %s: charged %d (%d own), want %d", usage, used[kind.Input], own, want)
		}
	}
}

// TestSandbox checks that the same text has the same vector, and similar texts similar ones.
func TestSandbox(t *testing.T) {
	t.Parallel()
	raw, err := vectors([]byte(`{"model":"m","input":["the red car","A RED car!","nothing alike","the red car"],"dimensions":64}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data []struct{ Embedding []float64 }
	}
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Data) != 4 || len(answer.Data[0].Embedding) != 64 {
		t.Fatalf("%v, %s", err, raw)
	}
	cosine := func(i int) (sum float64) {
		for at, v := range answer.Data[0].Embedding {
			sum += v * answer.Data[i].Embedding[at]
		}
		return sum
	}
	if same, similar, other := cosine(3), cosine(1), cosine(2); math.Abs(same-1) > 1e-6 || similar < 0.4 || other > 0.3 {
		t.Errorf("similarities %f, %f, %f", same, similar, other)
	}
	if _, err := vectors([]byte(`{"model":"m","input":""}`)); fault.Of(err).Param != "input" {
		t.Errorf("an empty text: %v", err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":["a",[1],"\u0000"],"dimensions":1e3}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		opened, err := open(body)
		if err != nil || opened.Check(model) != nil {
			return
		}
		for _, p := range opened.Parts(1) {
			if bound, own := p.Bound()[kind.Input], p.Count(&wire.Counter{})[kind.Input]; own > bound && bound < 20 {
				t.Errorf("%s: %d tokens of at most %d", body, own, bound)
			}
			if !json.Valid(p.Body("m", opened.Unknown()).Bytes()) {
				t.Errorf("%s: an invalid body for the line", body)
			}
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"data":[{"embedding":"AAAAPw=="}],"model":1,"model":2}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, format := range []string{formatFloat, formatBase64} {
			opened, err := open([]byte(`{"model":"m","input":"a","encoding_format":"` + format + `"}`))
			if err != nil || opened.Check(model) != nil {
				t.Fatal(err)
			}
			parts := opened.Parts(0)
			if _, err := parts[0].Read(answer); err != nil {
				continue
			}
			if out := bytes.Join(opened.Answer(parts, kind.Charged{Model: "m", Used: kind.Quantities{kind.Input: 1}}), nil); !json.Valid(out) {
				t.Errorf("%s becomes %s", answer, out)
			}
		}
	})
}
