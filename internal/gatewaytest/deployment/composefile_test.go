package deployment

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const folder = "../../../deploy"

// values has a value for each variable of env.example.
var values = map[string]string{
	"DOMAIN":            "localhost:8443",
	"POSTGRES_PASSWORD": "password-of-the-database",
	"STORE_PASSWORD":    "password-of-the-store",
	"ADMIN_TOKEN":       "token-of-the-operator",
	"GRAFANA_PASSWORD":  "password-of-grafana",
}

// service is a service of a compose file.
type service struct {
	Image       string
	Command     []string
	Environment map[string]string
	Volumes     []string // SOURCE:TARGET[:ro]
	Healthcheck struct{ Test []string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

// mounts returns the sources of the service's volumes by their paths in the container.
func (s service) mounts() map[string]string {
	sources := map[string]string{}
	for _, volume := range s.Volumes {
		parts := strings.Split(volume, ":")
		sources[parts[1]] = parts[0]
	}
	return sources
}

// variable matches ${NAME}, ${NAME:-default} and ${NAME:?message}.
var variable = regexp.MustCompile(`\$\{(\w+)(:[-?][^}]*)?\}`)

// readCompose returns the services of the compose file, with values for the variables of env.example.
func readCompose(t *testing.T) map[string]service {
	t.Helper()
	example := read(t, "compose/env.example")
	text := variable.ReplaceAllStringFunc(read(t, "compose/compose.yaml"), func(match string) string {
		parts := variable.FindStringSubmatch(match)
		defaultValue, optional := strings.CutPrefix(parts[2], ":-")
		if !optional && !strings.Contains("\n"+example, "\n"+parts[1]+"=") {
			t.Errorf("env.example does not have %s", parts[1])
		}
		if value, set := values[parts[1]]; set {
			return value
		}
		return defaultValue
	})
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// dockerfile has the parts of our Dockerfile that the tests use.
type dockerfile struct {
	build       string // the command that builds the binary; it writes to /out
	environment map[string]string
	user        string
	command     []string // ENTRYPOINT and CMD
	healthcheck []string
}

// readDockerfile reads our Dockerfile.
func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	read := dockerfile{environment: map[string]string{}}
	list := func(text string) (words []string) {
		if err := json.Unmarshal([]byte(text[strings.Index(text, "["):]), &words); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return words
	}
	for _, line := range instructions(t) {
		name, rest, _ := strings.Cut(line, " ")
		switch name {
		case "RUN":
			read.build = rest // the last RUN builds the binary
		case "ENV":
			for _, pair := range strings.Fields(rest) {
				key, value, _ := strings.Cut(pair, "=")
				read.environment[key] = value
			}
		case "USER":
			read.user = rest
		case "ENTRYPOINT", "CMD":
			read.command = append(read.command, list(rest)...)
		case "HEALTHCHECK":
			read.healthcheck = list(rest)
		}
	}
	return read
}

// instructions returns the instructions of the Dockerfile, with continuation lines joined.
func instructions(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []string
	current := ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		whole, more := strings.CutSuffix(line, `\`)
		current += whole
		if !more {
			all, current = append(all, current), ""
		}
	}
	return all
}

// read returns the text of a file in deploy.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
