package contract_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/contract"
	"tollgate/internal/contract/contracttest"
	"tollgate/internal/fault"
)

// both are the documents, decoded.
func both(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for name, read := range map[string]func(func(string) string) (*contract.OpenAPI, error){
		"callers": contract.Callers, "operators": contract.Operators,
	} {
		d, err := read(fault.Explain)
		if err != nil {
			t.Fatal(err)
		}
		var top map[string]any
		if err := json.Unmarshal(d.JSON(), &top); err != nil {
			t.Fatal(err)
		}
		out[name] = top
	}
	return out
}

func at(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// responses returns the responses of both documents by status, with components resolved.
func responses(t *testing.T) (all []response) {
	t.Helper()
	for name, top := range both(t) {
		for path, methods := range top["paths"].(map[string]any) {
			for method, of := range methods.(map[string]any) {
				for status, v := range at(of, "responses").(map[string]any) {
					if ref, ok := at(v, "$ref").(string); ok {
						v = at(top, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
					}
					if v == nil {
						t.Fatalf("%s %s %s: a reference leads nowhere", name, method, path)
					}
					all = append(all, response{name, path, strings.ToUpper(method), status, v.(map[string]any)})
				}
			}
		}
	}
	return all
}

type response struct {
	document, path, method, status string
	of                             map[string]any
}

// operation is the method and the path.
func (r response) operation() string { return r.method + " " + r.path }

func (r response) names(list string) (all []string) {
	found, _ := r.of[list].([]any)
	for _, v := range found {
		all = append(all, v.(string))
	}
	return all
}

// TestEveryCodeIsDocumented holds the table of errors against the documents, both
// ways: each code stands with its status, and below /native its type does.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	codes, types := map[string]bool{}, map[string]bool{}
	for _, r := range responses(t) {
		for _, code := range r.names("x-codes") {
			codes[code] = true
			row, known := fault.Lookup(fault.Code(code))
			if !known || strconv.Itoa(row.Status) != r.status {
				t.Errorf("%s %s: %s with status %s; the table says %d", r.document, r.path, code, r.status, row.Status)
			}
		}
		for _, name := range r.names("x-types") {
			types[r.status+" "+name] = true
			if !slices.ContainsFunc(fault.Table(), func(row fault.TableRow) bool {
				return row.Native == name && strconv.Itoa(row.Status) == r.status
			}) && (r.status != "429" || name != "overloaded_error") { // every line is busy
				t.Errorf("%s %s: %s with status %s is in no table", r.document, r.path, name, r.status)
			}
		}
	}
	for _, row := range fault.Table() {
		if !codes[string(row.Code)] {
			t.Errorf("%s is in no document", row.Code)
		}
		status := row.Status
		if row.Native == "not_found_error" {
			status = http.StatusNotFound
		}
		if row.Code != fault.InvalidCatalog && !types[strconv.Itoa(status)+" "+row.Native] {
			t.Errorf("%d %s is in no document", status, row.Native)
		}
	}
}

// TestRefusalsTellTheirCodes checks that each code in the documents has an explanation, and that
// unknown codes are faults.
func TestRefusalsTellTheirCodes(t *testing.T) {
	t.Parallel()
	explained := 0
	for _, r := range responses(t) {
		for _, code := range r.names("x-codes") {
			explained++
			if about, _ := r.of["description"].(string); !strings.Contains(about, "\n\n`"+code+"`: "+fault.Explain(code)) {
				t.Errorf("%s %s: %s is not explained in %q", r.document, r.path, code, about)
			}
		}
	}
	if explained < 30 {
		t.Errorf("%d codes found: the test does not find them", explained)
	}
	if _, err := contract.Callers(func(string) string { return "" }); err == nil {
		t.Error("codes that nobody knows are taken")
	}
}

// TestEveryCodeOfFailedJobsIsDocumented holds the other table against both
// documents.
func TestEveryCodeOfFailedJobsIsDocumented(t *testing.T) {
	t.Parallel()
	var want []any
	for _, row := range fault.JobTable() {
		want = append(want, string(row.Code))
	}
	for name, top := range both(t) {
		got := at(top, "components", "schemas", "JobError", "properties", "code", "enum").([]any)
		if !slices.Equal(got, want) {
			t.Errorf("%s: failed jobs have the codes %v, the table %v", name, got, want)
		}
	}
}

// TestExamplesKeepTheirSchemas holds every example against the schema beside it,
// as strictly as answers are.
func TestExamplesKeepTheirSchemas(t *testing.T) {
	t.Parallel()
	examples, err := contracttest.Examples()
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) < 100 {
		t.Errorf("only %d examples were found", len(examples))
	}
	for place, err := range examples {
		if err != nil {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// TestEveryOperationHasAnExample checks each answer with a JSON body, and each required request
// body.
func TestEveryOperationHasAnExample(t *testing.T) {
	t.Parallel()
	for name, top := range both(t) {
		for path, methods := range top["paths"].(map[string]any) {
			for method, of := range methods.(map[string]any) {
				request := at(of, "requestBody", "content", "application/json")
				if request != nil && at(of, "requestBody", "required") == true && at(request, "example") == nil {
					t.Errorf("%s %s %s: no example of a request", name, method, path)
				}
				for status, v := range at(of, "responses").(map[string]any) {
					if good := at(v, "content", "application/json"); status[0] == '2' && good != nil && at(good, "example") == nil {
						t.Errorf("%s %s %s %s: no example", name, method, path, status)
					}
				}
			}
		}
	}
}
