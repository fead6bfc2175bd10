package jobs

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestStartWithoutTheBucket starts a gateway with an unreachable bucket and old credentials in the
// credentials file. Chat works and jobs wait. The jobs run after the bucket is reachable again and
// SIGHUP has reloaded the file.
func TestStartWithoutTheBucket(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		bucket := s3server.Start(t)
		target, err := url.Parse(bucket.URL)
		if err != nil {
			t.Fatal(err)
		}
		var up atomic.Bool
		var refused atomic.Int32
		forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // the Host header is signed, so it stays
		}, ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusForbidden {
				refused.Add(1)
			}
			return nil
		}}
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !up.Load() {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			forward.ServeHTTP(w, r)
		}))
		t.Cleanup(proxy.Close)
		keys := filepath.Join(t.TempDir(), "credentials")
		write := func(secret string) {
			t.Helper()
			text := "[default]\naws_access_key_id = " + s3server.Access + "\naws_secret_access_key = " + secret + "\n"
			if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("old")
		p := scene.NewNode(t, binary, database, map[string]string{
			"media": bucket.Location(proxy.URL), "start_wait": "5s", "AWS_SHARED_CREDENTIALS_FILE": keys,
			"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_CONFIG_FILE": "/nowhere", "AWS_EC2_METADATA_DISABLED": "true",
		})
		p.SetCatalog([]map[string]any{
			scene.ChatModel("chatter", nil), scene.ImageModel("easel", nil),
		}, []map[string]any{
			{"id": "sandbox", "provider": "sandbox", "models": map[string]string{"chatter": "chat", "easel": "image"}},
		})
		if !warned(t, p) {
			t.Error("/readyz does not warn about the bucket")
		}
		c := p.Customer()
		if r := c.Call(t, "POST", "/v1/chat/completions", []byte(scene.Request(scene.Chat, "chatter", false, nil))); r.Status != 200 {
			t.Errorf("chat without a bucket: %s", r)
		}
		id := c.Submit(t, "image", scene.JobRequest("easel", "a boat", nil))
		up.Store(true)
		scene.Eventually(t, "the bucket refuses the old credentials", func() bool { return refused.Load() > 0 })
		if j := c.Poll(t, "image", id); j.Status != "queued" {
			t.Errorf("a job without a bucket: %+v", j)
		}
		write(s3server.Secret)
		if err := syscall.Kill(p.Pid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		c.Becomes(t, "image", id, "succeeded")
		scene.Eventually(t, "/readyz no longer warns about the bucket", func() bool { return !warned(t, p) })
		p.Audit(t)
	})
}
