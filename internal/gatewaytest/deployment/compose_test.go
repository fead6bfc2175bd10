// Package deployment tests the files in deploy: the services of the compose file as processes of
// this machine, and the image without a container. The tests need programs that `make test` does
// not, so only `make deployments` runs them.
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

// asked says whether `make deployments` runs the tests.
func asked(t *testing.T) bool {
	if os.Getenv("TOLLGATE_TEST_DEPLOYMENTS") != "yes" {
		t.Log("deployments are tried by `make deployments`")
		return false
	}
	if runtime.GOOS != "linux" {
		t.Log("deployments are tried on Linux alone: they were NOT tried")
		return false
	}
	return true
}

// catalog has a model for chat and one for images on the sandbox.
const catalog = `{"models": [
	{"id": "swift-1", "kind": "chat", "state": "open", "forms": ["chat"], "context_window": 8000, "max_output_tokens": 1000,
	 "price": {"input": 1, "output": 1}},
	{"id": "easel-1", "kind": "image", "state": "open", "price": {"1K": 0.03}, "ratios": ["1:1"], "max_images": 1}],
	"lines": [{"id": "only", "provider": "sandbox", "models": {"swift-1": "swift", "easel-1": "easel"}}]}`

// TestCompose starts the services of the compose file in their order with their health checks, and
// uses them as a customer, an operator and Prometheus.
func TestCompose(t *testing.T) {
	if !asked(t) {
		return
	}
	s := newStack(t)
	checkCaddy(s)
	for name := range s.services {
		if name != "grafana" { // see testGrafana
			s.up(name)
		}
	}
	caller := newCaller(s)
	key := caller.setUp(s)
	s.healthy("tollgate-1")
	s.healthy("tollgate-2")

	t.Run("answers through Caddy", func(t *testing.T) { testChat(t, caller, key) })
	t.Run("tells nodes who calls", func(t *testing.T) { testTrustedProxy(t, caller) })
	t.Run("keeps media in the store", func(t *testing.T) { testMedia(t, s, caller, key) })
	t.Run("is watched by Prometheus", func(t *testing.T) { testPrometheus(t, s) })
	t.Run("goes on when a node is killed", func(t *testing.T) { testKilledNode(t, s, caller, key) })
	t.Run("ends in time, with its books in order", func(t *testing.T) { testStop(t, s) })
	t.Run("provisions Grafana", func(t *testing.T) { testGrafana(t, s) })
}

// checkCaddy fails if Caddy is older than the compose file's: older versions lose calls with a
// stopped node.
func checkCaddy(s *stack) {
	s.t.Helper()
	program := s.program("caddy")
	output, err := exec.Command(program, "version").Output()
	s.must(err)
	version := string(output)
	if built, err := buildinfo.ReadFile(program); err == nil && strings.HasPrefix(built.Main.Version, "v") {
		version = built.Main.Version // it does not know its own where `go install` made it
	}
	var have, want struct{ major, minor int }
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &have.major, &have.minor); err != nil {
		s.t.Fatalf("the version of Caddy is %q: %v", version, err)
	}
	_, err = fmt.Sscanf(s.services["caddy"].Image, "caddy:%d.%d", &want.major, &want.minor)
	s.must(err)
	if have.major < want.major || have.major == want.major && have.minor < want.minor {
		s.t.Fatalf("this Caddy is %s, and the compose file's is %d.%d: go install github.com/caddyserver/caddy/v2/cmd/caddy@latest",
			strings.TrimSpace(version), want.major, want.minor)
	}
}

// caller calls the gateway by its name, through Caddy with TLS.
type caller struct {
	t       *testing.T
	client  *http.Client
	account string
}

// from is the client address of calls, which the nodes trust.
const from = "127.30.0.200"

// newCaller trusts Caddy's own certificate authority.
func newCaller(s *stack) *caller {
	authority := x509.NewCertPool()
	scene.Eventually(s.t, "Caddy has an authority", func() bool {
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

// ask sends a request, fails on an error, and reads the answer.
func (c *caller) ask(t *testing.T, method, path, token, body string) (answer struct{ ID, Key, Status string }, raw []byte) {
	t.Helper()
	status, raw, err := c.try(method, path, token, body)
	if err != nil || status >= 300 {
		t.Fatalf("%s %s: %v, %d %s", method, path, err, status, raw)
	}
	_ = json.Unmarshal(raw, &answer) // files are none, streams neither
	return answer, raw
}

// setUp opens the operator API without a catalog, applies one as compose.yaml describes, and
// creates an account. It returns a key.
func (c *caller) setUp(s *stack) (key string) {
	c.t.Helper()
	operator := values["ADMIN_TOKEN"]
	scene.Eventually(c.t, "an operator comes in", func() bool {
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
	made, _ := c.ask(c.t, "POST", "/admin/v1/accounts/"+c.account+"/keys", operator, `{}`)
	scene.Eventually(c.t, "both nodes have the catalog", func() bool { // Caddy alternates between the nodes
		for range 6 {
			_, listed, err := c.try("GET", "/v1/models", made.Key, "")
			if err != nil || !bytes.Contains(listed, []byte("swift-1")) {
				return false
			}
		}
		return true
	})
	return made.Key
}

// testChat wants an answer whole and streamed.
func testChat(t *testing.T, c *caller, key string) {
	for _, stream := range []bool{false, true} {
		_, raw := c.ask(t, "POST", "/v1/chat/completions", key,
			fmt.Sprintf(`{"model": "swift-1", "stream": %t, "messages": [{"role": "user", "content": "Good morning"}]}`, stream))
		if !bytes.Contains(raw, []byte("finish_reason")) || bytes.Contains(raw, []byte("[DONE]")) != stream {
			t.Errorf("%s", raw)
		}
	}
}

// testTrustedProxy wants the nodes to take Caddy's word for where a call comes
// from.
func testTrustedProxy(t *testing.T, c *caller) {
	for address, want := range map[string]int{from: http.StatusOK, "203.0.113.7": http.StatusForbidden} {
		made, _ := c.ask(t, "POST", "/admin/v1/accounts/"+c.account+"/keys", values["ADMIN_TOKEN"], `{"allowed_ips": ["`+address+`"]}`)
		if status, raw, err := c.try("GET", "/v1/models", made.Key, ""); err != nil || status != want {
			t.Errorf("a key of %s: %v, %d %s", address, err, status, raw)
		}
	}
}

// testMedia wants a job's picture by its public link, and in the bucket.
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
		t.Errorf("%d bytes that are no PNG", len(picture))
	}
	kept := 0
	s.must(filepath.WalkDir(filepath.Join(s.folder, "volumes/buckets/tollgate"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Equal(raw, picture) {
			kept++
		}
		return err
	}))
	if kept != 1 {
		t.Errorf("the picture is %d times in the bucket", kept)
	}
}

// prometheus asks Prometheus and reads the data of its answer.
func prometheus(s *stack, path string, data any) bool {
	answer, err := http.Get("http://" + s.address("prometheus") + ":9090" + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	var whole struct{ Data json.RawMessage }
	return json.NewDecoder(answer.Body).Decode(&whole) == nil && json.Unmarshal(whole.Data, data) == nil
}

// testPrometheus wants both nodes scraped, and every rule loaded and evaluated.
func testPrometheus(t *testing.T, s *stack) {
	scene.Eventually(t, "Prometheus scrapes both nodes", func() bool {
		var found struct {
			ActiveTargets []struct{ Health, ScrapeURL, LastError string }
		}
		if !prometheus(s, "/api/v1/targets", &found) || len(found.ActiveTargets) != 2 {
			return false
		}
		for _, target := range found.ActiveTargets {
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
	loaded, unwell := 0, []string{}
	scene.Eventually(t, "Prometheus has evaluated the rules", func() bool {
		if !prometheus(s, "/api/v1/rules", &rules) {
			return false
		}
		loaded, unwell = 0, nil
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				loaded++
				if rule.Health != "ok" {
					unwell = append(unwell, rule.Name+": "+rule.Health+" "+rule.LastError)
				}
			}
		}
		return loaded == want && len(unwell) == 0
	})
	if want == 0 || loaded != want || len(unwell) > 0 {
		t.Errorf("%d rules of %d, of which %q", loaded, want, unwell)
	}
}

// testKilledNode wants calls answered while a node is gone, and the node back.
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

// testStop wants both nodes to end by themselves when they are stopped, and the
// audit to find nothing.
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
	t.Log("Grafana is NOT run: its files are read")
	mounts := s.services["grafana"].mounts()
	if source := read(t, "compose/grafana/provisioning/datasources/prometheus.yaml"); !strings.Contains(source, "http://prometheus:9090") {
		t.Errorf("the source of data is %s", source)
	}
	provider := read(t, "compose/grafana/provisioning/dashboards/tollgate.yaml")
	for _, file := range []string{"dashboard.json", "dashboard-money.json"} {
		if !strings.Contains(provider, "path: /etc/tollgate") || mounts["/etc/tollgate/"+file] == "" {
			t.Errorf("%s is not where %s looks", file, provider)
		}
		if !json.Valid([]byte(read(t, filepath.Join("compose", mounts["/etc/tollgate/"+file])))) {
			t.Errorf("%s is no JSON", file)
		}
	}
}
