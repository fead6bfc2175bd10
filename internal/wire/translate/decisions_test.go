package translate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// feature is a feature of requests, read from testdata/features.txt.
type feature struct {
	heading, name, with, dropped string
	thinks, open                 bool
	in                           map[wire.Form]map[string]string // by client form and place
}

// readFeatures reads the features.
func readFeatures(t *testing.T) (list []*feature) {
	t.Helper()
	text, err := os.ReadFile("testdata/features.txt")
	if err != nil {
		t.Fatal(err)
	}
	heading := ""
	var f *feature
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "", "#":
		case "##":
			heading = rest
		case "=":
			f = &feature{heading: heading, name: rest, in: map[wire.Form]map[string]string{}}
			list = append(list, f)
		case "with":
			f.with = strings.Trim(rest, `"`)
		case "dropped":
			f.dropped = rest
		case "thinks":
			f.thinks = true
		case "open":
			f.open = true
		default:
			name, place, _ := strings.Cut(word, ".")
			if form := wire.Form(name); f.in[form] == nil {
				f.in[form] = map[string]string{}
			}
			f.in[wire.Form(name)][place] = rest
		}
	}
	return list
}

// probe opens a request with a feature: a question, an answer, results of tools, and a second question
// unless the results are open.
func probe(client wire.Form, open bool, place map[string]string) (wire.Request, error) {
	with := func(name string) string {
		if place[name] == "" {
			return ""
		}
		return "," + place[name]
	}
	last := func(question string) string {
		if !open {
			return with("results") + "," + question
		}
		return with("results")
	}
	switch client {
	case wire.FormMessages:
		body := `"max_tokens":99` + with("")
		if strings.HasPrefix(place[""], `"max_tokens"`) {
			body = place[""]
		}
		return opened(client, []byte(`{"model":"m",`+body+`,"messages":[{"role":"user","content":"hi"},`+
			`{"role":"assistant","content":[{"type":"text","text":"yes"}`+with("assistant")+`]},{"role":"user","content":[`+
			strings.TrimPrefix(last(`{"type":"text","text":"go"}`+with("user")), ",")+`]}]}`))
	case wire.FormResponses:
		return opened(client, []byte(`{"model":"m"`+with("")+`,"input":[{"role":"user","content":"hi"},`+
			`{"role":"assistant","content":"yes"}`+with("assistant")+
			last(`{"role":"user","content":[{"type":"input_text","text":"go"}`+with("user")+`]}`)+`]}`))
	case wire.FormGemini:
		return opened(client, []byte(`{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"text":"yes"}`+
			with("assistant")+`]},{"role":"user","parts":[`+strings.TrimPrefix(last(`{"text":"go"}`+with("user")), ",")+`]}]`+with("")+`}`))
	}
	return opened(client, []byte(`{"model":"m"`+with("")+`,"messages":[{"role":"user","content":"hi"},`+
		`{"role":"assistant","content":"yes"`+with("assistant")+`}`+
		last(`{"role":"user","content":[{"type":"text","text":"go"}`+with("user")+`]}`)+`]}`))
}

// lineTarget is a column of the tables: the lines of a form.
type lineTarget struct {
	model  string
	form   wire.Form
	openAI bool
}

// encodeProbe returns the line's request for a request with a feature and what the gateway does itself, or the
// error.
func encodeProbe(client wire.Form, line lineTarget, f *feature, place map[string]string) (sent map[string]any, local []string, err error) {
	seal := string(wire.SealOf(originOf(pairtest.Identity().Origin, line.form))) + "c2ln"
	place = maps.Clone(place)
	for at, text := range place {
		place[at] = strings.ReplaceAll(text, "SEAL", seal)
	}
	r, err := probe(client, f.open, place)
	if err != nil {
		return nil, nil, err
	}
	t := wire.Translation{Edits: wire.Edits{Model: line.model}, MaxOutput: 99, Reasoning: f.thinks, OpenAI: line.openAI}
	if line.form == wire.FormInteractions {
		t.Images = func(addresses []string) []wire.FetchedImage { return make([]wire.FetchedImage, len(addresses)) }
	}
	p := New(r, line.form, pairtest.Identity())
	body, err := p.Body(t)
	if err != nil {
		return nil, nil, err
	}
	for _, stop := range p.(*pair).decoded.LocalStops {
		local = append(local, "the gateway stops at `"+string(stop)+"`")
	}
	err = json.Unmarshal(body.Bytes(), &sent)
	return sent, local, err
}

// decision returns the changed members of the line's request for a feature of a client, the refused field
// after "400", or "dropped".
func decision(t *testing.T, client wire.Form, line lineTarget, f, with *feature) string {
	t.Helper()
	before, _, err := encodeProbe(client, line, f, with.in[client])
	if err != nil {
		t.Fatalf("%s: %s on %s without it: %v", f.name, client, line.form, err)
	}
	after, local, err := encodeProbe(client, line, f, f.in[client])
	var refused *fault.Error
	switch {
	case errors.As(err, &refused) && refused.Code == fault.InvalidRequest:
		return "400 `" + refused.Param + "`"
	case err != nil:
		t.Fatalf("%s: %s on %s: %v", f.name, client, line.form, err)
	}
	var changes changeList
	changes.add("", before, after)
	changes = append(changes, local...)
	if len(changes) == 0 {
		return "dropped"
	}
	return strings.Join(changes, ", ")
}

// changeList are the paths of the members of a request that differ from another request.
type changeList []string

// add adds the changes of a value at a path.
func (c *changeList) add(at string, before, after any) {
	switch now := after.(type) {
	case map[string]any:
		c.addObject(at, before, now)
	case []any:
		c.addArray(at, before, now)
	case string, bool:
		const longest = 20
		text, _ := json.Marshal(now) // of a string or a boolean
		switch {
		case before == after:
		case len(text) <= longest:
			c.addPath(at + ": " + string(text))
		default:
			c.addPath(at)
		}
	default:
		if before != after {
			c.addPath(at)
		}
	}
}

func (c *changeList) addPath(path string) {
	if path = "`" + path + "`"; !slices.Contains(*c, path) {
		*c = append(*c, path)
	}
}

func (c *changeList) addObject(at string, before any, now map[string]any) {
	was, existed := before.(map[string]any)
	for _, name := range []string{"type", "role"} {
		if kind, ok := now[name].(string); ok && !existed {
			c.addPath(at + "[" + kind + "]")
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		c.add(strings.TrimPrefix(at+"."+name, "."), was[name], now[name])
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, ok := now[name]; !ok {
			c.addPath("no " + strings.TrimPrefix(at+"."+name, "."))
		}
	}
}

// addArray adds the elements between the common beginning and the common end of two arrays. A string stands
// for an array with one text.
func (c *changeList) addArray(at string, before any, now []any) {
	was, _ := before.([]any)
	if text, ok := before.(string); ok && len(now) > 0 {
		if first, _ := now[0].(map[string]any); first["text"] == text {
			was = now[:1]
		}
	}
	from, end, least := 0, 0, min(len(was), len(now))
	for from < least && reflect.DeepEqual(was[from], now[from]) {
		from++
	}
	for end < least-from && reflect.DeepEqual(was[len(was)-1-end], now[len(now)-1-end]) {
		end++
	}
	for i := from; i < len(now)-end; i++ {
		var old any
		if i < len(was)-end {
			old = was[i]
		}
		c.add(at, old, now[i])
	}
	if len(now) < len(was) {
		c.addPath("fewer " + at)
	}
}

// cell joins the decisions of a line by client. Clients with the same decision come together, and if all
// clients have it, unnamed.
func cell(clients []wire.Form, decisions map[wire.Form]string) string {
	var texts []string
	names := map[string][]string{}
	for _, client := range clients {
		text := decisions[client]
		if field, ok := strings.CutPrefix(text, "400 "); ok {
			text = "400"
			names["fields"] = append(names["fields"], field)
		}
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], string(client))
	}
	for i, text := range texts {
		clients := strings.Join(names[text], ", ")
		if text == "400" {
			text += " " + strings.Join(slices.Compact(names["fields"]), ", ")
		}
		if texts[i] = text; len(texts) > 1 {
			texts[i] = clients + ": " + text
		}
	}
	return strings.Join(texts, "; ")
}

// providersDocument is the document with the tables.
const providersDocument = "../../../docs/providers.md"

// The tables are in the document between these lines.
const (
	tablesBegin = "<!-- The tables below are generated: go test ./internal/wire/translate -run TestDecisions -update -->\n"
	tablesEnd   = "<!-- end of the generated tables -->\n"
)

// TestDecisions compares the tables of the document with the requests to lines. Nothing is dropped
// without a reason. The flag -update writes the tables.
func TestDecisions(t *testing.T) {
	t.Parallel()
	features := readFeatures(t)
	named := map[string]*feature{"": {}}
	for _, f := range features {
		named[f.name] = f
	}
	lines := []lineTarget{{model: "m", form: wire.FormChat}, {model: "claude-sonnet-4-6", form: wire.FormMessages},
		{model: "m", form: wire.FormResponses}, {model: "gemini-3-pro", form: wire.FormGemini},
		{model: "gemini-3-pro", form: wire.FormInteractions}}
	var out strings.Builder
	heading := ""
	for _, f := range features {
		if f.heading != heading {
			heading = f.heading
			fmt.Fprintf(&out, "\n### %s\n\n| feature | chat line | messages line | responses line | gemini line | interactions line | "+
				"why it may be dropped |\n|---|---|---|---|---|---|---|\n", heading)
		}
		if named[f.with] == nil {
			t.Fatalf("%s: there is no feature %q", f.name, f.with)
		}
		fmt.Fprintf(&out, "| %s |", f.name)
		drops := false
		for _, line := range lines {
			var clients []wire.Form
			decisions, others := map[wire.Form]string{}, map[wire.Form]string{}
			for _, client := range append(slices.Clone(clientForms), wire.FormGemini) {
				if client == line.form || f.in[client] == nil {
					continue
				}
				clients = append(clients, client)
				others[client] = decision(t, client, line, f, named[f.with])
				decisions[client] = others[client]
				if line.form == wire.FormResponses {
					line.openAI = true
					decisions[client] = decision(t, client, line, f, named[f.with])
					line.openAI = false
				}
				drops = drops || decisions[client] == "dropped" || others[client] == "dropped"
			}
			text := cell(clients, decisions)
			if other := cell(clients, others); other != text {
				text = "OpenAI, Azure: " + text + ". Other hosts: " + other
			}
			out.WriteString(strings.TrimRight(" "+text, " ") + " |")
		}
		reason := ""
		switch {
		case drops && f.dropped == "":
			t.Errorf("%s is dropped without a reason: %s", f.name, out.String()[strings.LastIndex(out.String(), "\n")+1:])
		case !drops && f.dropped != "":
			t.Errorf("%s has a reason to be dropped, but no line drops it", f.name)
		case drops:
			reason = " " + f.dropped
		}
		out.WriteString(reason + " |\n")
	}
	out.WriteString("\n")
	document, err := os.ReadFile(providersDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(document), tablesBegin)
	got, after, found := strings.Cut(rest, tablesEnd)
	if !found {
		t.Fatalf("%s has no place for the tables: %q and %q", providersDocument, tablesBegin, tablesEnd)
	}
	if *update {
		got = out.String()
		text := []byte(before + tablesBegin + got + tablesEnd + after)
		if err := os.WriteFile(providersDocument, text, 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	}
	if got != out.String() {
		t.Errorf("%s differs from the translation; run go test ./internal/wire/translate -run TestDecisions -update", providersDocument)
	}
}

// TestFeaturesAreComplete checks that the tables have every field that a form documents.
func TestFeaturesAreComplete(t *testing.T) {
	t.Parallel()
	// Fields that every request has, other vendors' names of the same field, and fields that every line refuses.
	const others = " model messages input stream stream_options store tools tool_choice functions function_call max_completion_tokens " +
		"max_output_tokens max_new_tokens max_tokens_to_sample n_predict num_predict tokens_to_generate min_tokens min_completion_tokens " +
		"modalities audio speed inference_geo container thread background background_options multi_agent conversation previous_response_id " +
		"prompt billing_policy fallbacks fallback_credit_token image access_programs output_format compaction mcp_servers max_tokens "
	features := readFeatures(t)
	for _, form := range field.Forms() {
		for _, name := range field.Form(form).Names() {
			if !field.Form(form).Find([]byte(name)).Documented || strings.Contains(others, " "+name+" ") {
				continue
			}
			if !slices.ContainsFunc(features, func(f *feature) bool { return strings.Contains(f.in[wire.Form(form)][""], `"`+name+`":`) }) {
				t.Errorf("testdata/features.txt has no feature with the field %s of the form %s", name, form)
			}
		}
	}
}
