// Package deployment owns the tests of the files in deploy. The services of the compose file run as
// processes of this machine, and the image runs without a container. The tests need more programs
// than `make test`, so only `make deployments` runs them.
package deployment

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// isEnabled reports whether `make deployments` runs the tests.
func isEnabled(t *testing.T) bool {
	if os.Getenv("TOLLGATE_TEST_DEPLOYMENTS") != "yes" {
		t.Log("`make deployments` runs this test")
		return false
	}
	if runtime.GOOS != "linux" {
		t.Log("this test needs Linux: it was NOT run")
		return false
	}
	return true
}

// catalog has a chat model and an image model on the sandbox.
const catalog = `{"models": [
	{"id": "swift-1", "kind": "chat", "state": "open", "forms": ["chat"], "context_window": 8000, "max_output_tokens": 1000,
	 "price": {"input": 1, "output": 1}},
	{"id": "easel-1", "kind": "image", "state": "open", "price": {"1K": 0.03}, "ratios": ["1:1"], "max_images": 1}],
	"lines": [{"id": "only", "provider": "sandbox", "models": {"swift-1": "swift", "easel-1": "easel"}}]}`

// TestCompose starts the services of the compose file in the order of their dependencies, with their
// health checks, and uses them as a customer, an operator and Prometheus.
func TestCompose(t *testing.T) {
	if !isEnabled(t) {
		return
	}
	s := newStack(t)
	checkCaddy(s)
	for name := range s.services {
		if name != "grafana" { // testGrafana only reads the files
			s.up(name)
		}
	}
	caller := newCaller(s)
	key := caller.setUp(s)
	s.healthy("tollgate-1")
	s.healthy("tollgate-2")

	t.Run("answers through Caddy", func(t *testing.T) { testChat(t, caller, key) })
	t.Run("passes the client's address", func(t *testing.T) { testTrustedProxy(t, caller) })
	t.Run("keeps media in the store", func(t *testing.T) { testMedia(t, s, caller, key) })
	t.Run("is scraped by Prometheus", func(t *testing.T) { testPrometheus(t, s) })
	t.Run("answers after the kill of a node", func(t *testing.T) { testKilledNode(t, s, caller, key) })
	t.Run("stops in time with correct books", func(t *testing.T) { testStop(t, s) })
	t.Run("provisions Grafana", func(t *testing.T) { testGrafana(t, s) })
}

// checkCaddy fails the test if the installed Caddy is older than the compose file's version. Older
// versions lose requests to a stopped node.
func checkCaddy(s *stack) {
	s.t.Helper()
	program := s.program("caddy")
	output, err := exec.Command(program, "version").Output()
	s.must(err)
	version := string(output)
	if built, err := buildinfo.ReadFile(program); err == nil && strings.HasPrefix(built.Main.Version, "v") {
		version = built.Main.Version // a Caddy from `go install` prints no version
	}
	var have, want struct{ major, minor int }
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &have.major, &have.minor); err != nil {
		s.t.Fatalf("the version of Caddy is %q: %v", version, err)
	}
	_, err = fmt.Sscanf(s.services["caddy"].Image, "caddy:%d.%d", &want.major, &want.minor)
	s.must(err)
	if have.major < want.major || have.major == want.major && have.minor < want.minor {
		s.t.Fatalf("the installed Caddy is %s, but the compose file needs %d.%d: go install github.com/caddyserver/caddy/v2/cmd/caddy@latest",
			strings.TrimSpace(version), want.major, want.minor)
	}
}

// caller sends requests to the gateway by its domain name, through Caddy with TLS.
type caller struct {
	t       *testing.T
	client  *http.Client
	account string
}

// from is the local address of the caller's connections. The nodes see it as the client's address.
const from = "127.30.0.200"

// newCaller returns a caller that trusts Caddy's own certificate authority.
func newCaller(s *stack) *caller {
	authority := x509.NewCertPool()
	scene.Eventually(s.t, "Caddy has created its certificate authority", func() bool {
		certificate, err := os.ReadFile(filepath.Join(s.root("caddy"), "data/caddy/pki/authorities/local/root.crt"))
		return err == nil && authority.AppendCertsFromPEM(certificate)
	})
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, net.JoinHostPort(s.address("caddy"), port))
		},
	}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &caller{t: s.t, client: &http.Client{Transport: transport, Timeout: time.Minute}}
}

// try sends a request and returns its status and body.
func (c *caller) try(method, path, token, body string) (int, []byte, error) {
	address := path
	if strings.HasPrefix(path, "/") {
		address = "https://" + values["DOMAIN"] + path
	}
	request, err := http.NewRequest(method, address, bytes.NewBufferString(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, raw, err
}

// ask sends a request and reads the answer. It fails the test if the status is 300 or more.
func (c *caller) ask(t *testing.T, method, path, token, body string) (answer struct{ ID, Key, Status string }, raw []byte) {
	t.Helper()
	status, raw, err := c.try(method, path, token, body)
	if err != nil || status >= 300 {
		t.Fatalf("%s %s: %v, %d %s", method, path, err, status, raw)
	}
	_ = json.Unmarshal(raw, &answer) // files and streams are not JSON objects
	return answer, raw
}

// setUp waits for the operator API, applies a catalog as compose.yaml describes, and creates an
// account. It returns a key of the account.
func (c *caller) setUp(s *stack) (key string) {
	c.t.Helper()
	operator := values["ADMIN_TOKEN"]
	scene.Eventually(c.t, "the operator API answers", func() bool {
		status, _, err := c.try("GET", "/admin/v1/accounts", operator, "")
		return err == nil && status == http.StatusOK
	})
	if status, raw, err := c.try("GET", "/console", "", ""); err != nil || status != http.StatusOK {
		c.t.Errorf("the console: %v, %d %s", err, status, raw)
	}
	apply := s.process("tollgate-1", []string{"/tollgate", "apply", "-"})
	apply.Stdin = strings.NewReader(catalog)
	if out, err := apply.CombinedOutput(); err != nil {
		c.t.Fatalf("apply: %v\n%s", err, out)
	}
	account, _ := c.ask(c.t, "POST", "/admin/v1/accounts", operator, `{"name": "deployment"}`)
	c.account = account.ID
	c.ask(c.t, "POST", "/admin/v1/accounts/"+c.account+"/credits", operator, `{"usd": 10}`)
	created, _ := c.ask(c.t, "POST", "/admin/v1/accounts/"+c.account+"/keys", operator, `{}`)
	scene.Eventually(c.t, "both nodes have the catalog", func() bool { // Caddy alternates between the nodes
		for range 6 {
			_, listed, err := c.try("GET", "/v1/models", created.Key, "")
			if err != nil || !bytes.Contains(listed, []byte("swift-1")) {
				return false
			}
		}
		return true
	})
	return created.Key
}

// testChat checks a streamed and a complete answer.
func testChat(t *testing.T, c *caller, key string) {
	for _, stream := range []bool{false, true} {
		_, raw := c.ask(t, "POST", "/v1/chat/completions", key,
			fmt.Sprintf(`{"model": "swift-1", "stream": %t, "messages": [{"role": "user", "content": "Good morning"}]}`, stream))
		if !bytes.Contains(raw, []byte("finish_reason")) || bytes.Contains(raw, []byte("[DONE]")) != stream {
			t.Errorf("%s", raw)
		}
	}
}

// testTrustedProxy checks that the nodes take the client's address from Caddy.
func testTrustedProxy(t *testing.T, c *caller) {
	for address, want := range map[string]int{from: http.StatusOK, "203.0.113.7": http.StatusForbidden} {
		created, _ := c.ask(t, "POST", "/admin/v1/accounts/"+c.account+"/keys", values["ADMIN_TOKEN"], `{"allowed_ips": ["`+address+`"]}`)
		if status, raw, err := c.try("GET", "/v1/models", created.Key, ""); err != nil || status != want {
			t.Errorf("a key of %s: %v, %d %s", address, err, status, raw)
		}
	}
}

// testMedia checks that a job's image is at its public link and in the bucket.
func testMedia(t *testing.T, s *stack, c *caller, key string) {
	job, _ := c.ask(t, "POST", "/v1/images/generations", key, `{"model": "easel-1", "prompt": "a red hat"}`)
	var done struct {
		Status string
		Data   []struct{ URL string }
	}
	scene.Eventually(t, "the job ends", func() bool {
		_, raw := c.ask(t, "GET", "/v1/images/jobs/"+job.ID, key, "")
		return json.Unmarshal(raw, &done) == nil && done.Status != "queued" && done.Status != "processing"
	})
	if done.Status != "succeeded" || len(done.Data) != 1 || !strings.HasPrefix(done.Data[0].URL, "https://"+values["DOMAIN"]+"/") {
		t.Fatalf("%+v", done)
	}
	_, picture := c.ask(t, "GET", done.Data[0].URL, "", "")
	if !bytes.HasPrefix(picture, []byte("\x89PNG")) {
		t.Errorf("the image of %d bytes is not a PNG", len(picture))
	}
	copies := 0
	s.must(filepath.WalkDir(filepath.Join(s.folder, "volumes/buckets/tollgate"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Equal(raw, picture) {
			copies++
		}
		return err
	}))
	if copies != 1 {
		t.Errorf("the bucket has %d copies of the image; want 1", copies)
	}
}

// prometheus calls the Prometheus API and decodes the data of the answer. It reports success.
func prometheus(s *stack, path string, data any) bool {
	answer, err := http.Get("http://" + s.address("prometheus") + ":9090" + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var whole struct{ Data json.RawMessage }
	return json.NewDecoder(answer.Body).Decode(&whole) == nil && json.Unmarshal(whole.Data, data) == nil
}

// testPrometheus checks that Prometheus scrapes both nodes, and loads and evaluates every rule.
func testPrometheus(t *testing.T, s *stack) {
	scene.Eventually(t, "Prometheus scrapes both nodes", func() bool {
		var targets struct {
			ActiveTargets []struct{ Health, ScrapeURL, LastError string }
		}
		if !prometheus(s, "/api/v1/targets", &targets) || len(targets.ActiveTargets) != 2 {
			return false
		}
		for _, target := range targets.ActiveTargets {
			if target.Health != "up" {
				return false
			}
		}
		return true
	})
	want := len(regexp.MustCompile(`(?m)^ *- (?:alert|record):`).FindAllString(read(t, "monitoring/alerts.yaml"), -1))
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	loaded, failed := 0, []string{}
	scene.Eventually(t, "Prometheus has evaluated the rules", func() bool {
		if !prometheus(s, "/api/v1/rules", &rules) {
			return false
		}
		loaded, failed = 0, nil
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				loaded++
				if rule.Health != "ok" {
					failed = append(failed, rule.Name+": "+rule.Health+" "+rule.LastError)
				}
			}
		}
		return loaded == want && len(failed) == 0
	})
	if want == 0 || loaded != want || len(failed) > 0 {
		t.Errorf("%d of %d rules are loaded, failed rules: %q", loaded, want, failed)
	}
}

// testKilledNode checks that requests succeed while a node is dead, and that the node returns.
func testKilledNode(t *testing.T, s *stack, c *caller, key string) {
	node := s.running["tollgate-1"]
	s.must(node.cmd.Process.Kill())
	<-node.done
	for range 10 {
		c.ask(t, "GET", "/v1/models", key, "")
		testChat(t, c, key)
	}
	s.start("tollgate-1") // as `restart: unless-stopped` does
	s.healthy("tollgate-1")
}

// testStop checks that both nodes end after SIGTERM, and that the audit finds no difference.
func testStop(t *testing.T, s *stack) {
	for _, name := range []string{"tollgate-1", "tollgate-2"} {
		if err := s.stop(s.running[name]); err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	}
	if out, err := s.process("tollgate-1", []string{"/tollgate", "audit"}).CombinedOutput(); err != nil {
		t.Errorf("the books do not agree: %v\n%s", err, out)
	}
}

// testGrafana reads Grafana's files without Grafana: the data source must be the compose file's
// Prometheus, and the dashboards must be in the provider's folder.
func testGrafana(t *testing.T, s *stack) {
	t.Log("Grafana is NOT run: the test only reads its files")
	mounts := s.services["grafana"].mounts()
	if source := read(t, "compose/grafana/provisioning/datasources/prometheus.yaml"); !strings.Contains(source, "http://prometheus:9090") {
		t.Errorf("the data source is %s; want the compose file's Prometheus", source)
	}
	provider := read(t, "compose/grafana/provisioning/dashboards/tollgate.yaml")
	for _, file := range []string{"dashboard.json", "dashboard-money.json"} {
		if !strings.Contains(provider, "path: /etc/tollgate") || mounts["/etc/tollgate/"+file] == "" {
			t.Errorf("%s is not in the folder of the provider %s", file, provider)
		}
		if !json.Valid([]byte(read(t, filepath.Join("compose", mounts["/etc/tollgate/"+file])))) {
			t.Errorf("%s is not valid JSON", file)
		}
	}
}
