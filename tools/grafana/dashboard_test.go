// Package grafana checks the dashboards against Grafana's own types. It is a separate module, because
// these types are large and no other code needs them.
package grafana

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboards checks each dashboard against Grafana's schema, and that Grafana loses no member
// when it reads and writes the dashboard.
func TestDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	paths, err := filepath.Glob("../../deploy/monitoring/dashboard*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d, strict dashboard.Dashboard
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		// Without a fault, UnmarshalJSONStrict returns an empty list of errors instead of nil.
		if err := strict.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" {
			t.Errorf("%s: %v", path, err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, member := range lostMembers(t, raw, d) {
			t.Errorf("%s: Grafana does not know %s", path, member)
		}
	}
}

// lostMembers returns the members changed or lost when a document is read and written.
func lostMembers(t *testing.T, raw []byte, read any) []string {
	written, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	var before, after any
	if json.Unmarshal(raw, &before) != nil || json.Unmarshal(written, &after) != nil {
		t.Fatal("the dashboard is not JSON")
	}
	return compare("", before, after)
}

// compare returns the paths below at of the values in before unequal to those in after.
func compare(at string, before, after any) (lost []string) {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		for name, value := range before {
			lost = append(lost, compare(at+"."+name, value, after[name])...)
		}
	case []any:
		after, _ := after.([]any)
		for i, value := range before {
			if i >= len(after) {
				return append(lost, fmt.Sprintf("%s[%d]", at, i))
			}
			lost = append(lost, compare(fmt.Sprintf("%s[%d]", at, i), value, after[i])...)
		}
	default:
		if !reflect.DeepEqual(before, after) {
			lost = append(lost, at)
		}
	}
	return lost
}
