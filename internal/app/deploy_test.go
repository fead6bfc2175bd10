package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestDeployments checks that the files in deploy/ set existing settings to good values.
func TestDeployments(t *testing.T) {
	t.Parallel()
	for file, variables := range map[string]func(*testing.T, []byte) map[string]string{
		"Dockerfile":                dockerVariables,
		"compose/compose.yaml":      composeVariables,
		"helm/tollgate/values.yaml": chartVariables,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../../deploy", file))
			if err != nil {
				t.Fatal(err)
			}
			set := variables(t, text)
			names := make([]string, 0, len(set))
			for name := range set {
				if !strings.HasPrefix(name, "TOLLGATE_") {
					continue // a key of a provider, or of the store
				}
				names = append(names, name)
				if !isSetting(name) {
					t.Errorf("%s is not a setting", name)
				}
			}
			if len(names) < 3 {
				t.Fatalf("only %q is set", names)
			}
			if _, err := ReadSettings(Sources{Environ: set}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestImagesArePinned checks that the compose file uses only pinned images, and the object store of
// our tests.
func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct{ Image string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for name, service := range file.Services {
		if _, tag, _ := strings.Cut(service.Image, ":"); tag == "" || tag == "latest" {
			t.Errorf("%s: the image %s has no version", name, service.Image)
		}
	}
	module, err := os.ReadFile("../../tools/versitygw/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	tested := regexp.MustCompile(`(?m)^\s*github.com/versity/versitygw (v\S+)`).FindSubmatch(module)
	if want := "versity/versitygw:" + string(tested[1]); file.Services["store"].Image != want {
		t.Errorf("the store is %s; tests run %s", file.Services["store"].Image, want)
	}
}

// isSetting reports whether a setting has this variable.
func isSetting(name string) bool {
	for _, s := range AllSettings() {
		if s.Env() == name {
			return true
		}
	}
	return false
}

// dockerVariables returns the variables of ENV lines.
func dockerVariables(_ *testing.T, text []byte) map[string]string {
	set := map[string]string{}
	for _, m := range regexp.MustCompile(`\b(TOLLGATE_[A-Z_]+)=(\S+)`).FindAllSubmatch(text, -1) {
		if name := string(m[1]); name != "TOLLGATE_ADMIN_TOKEN" { // of the example in the comment
			set[name] = string(m[2])
		}
	}
	return set
}

// composeVariables returns the variables of a node, with the empty values of env.example filled in.
func composeVariables(t *testing.T, text []byte) map[string]string {
	var file struct {
		Services map[string]struct{ Environment map[string]string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../../deploy/compose/env.example")
	if err != nil {
		t.Fatal(err)
	}
	open := regexp.MustCompile(`\$\{([A-Z_]+)[^}]*\}`)
	set := map[string]string{}
	for name, service := range file.Services {
		for key, value := range service.Environment {
			value = open.ReplaceAllStringFunc(value, func(reference string) string {
				variable := open.FindStringSubmatch(reference)[1]
				if !strings.Contains(string(example), "\n"+variable+"=") {
					t.Errorf("%s: env.example lacks %s", name, variable)
				}
				return "example-of-a-value"
			})
			if strings.HasPrefix(name, "tollgate-") {
				set[key] = value
			}
		}
	}
	return set
}

// chartVariables returns the variables built from the chart's values.
func chartVariables(t *testing.T, text []byte) map[string]string {
	var values struct{ Settings map[string]any }
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for name, value := range values.Settings {
		text, isText := value.(string)
		if value == true {
			text, isText = "true", true
		}
		name = "TOLLGATE_" + strings.ToUpper(name)
		switch {
		case isText && text != "":
			set[name] = text
		case !isSetting(name):
			t.Errorf("%s is not a setting", name)
		}
	}
	set["TOLLGATE_PUBLIC_URL"] = "https://api.example.com"
	return set
}
