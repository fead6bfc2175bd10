package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/egress"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// picture returns a small PNG.
func picture(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 16, 9))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// clip returns the beginning of an MP4 file.
func clip() []byte {
	return append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"), make([]byte, 64)...)
}

// host serves reference files and counts the requests.
type host struct {
	url  string
	hits atomic.Int64
	// before is called with each request; set it before the first one.
	before func(*http.Request)
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{}
	image := picture(t)
	bomb := bytes.Clone(image)
	copy(bomb[16:], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // 65,535 pixels wide and high
	files := map[string][]byte{
		"/a.png": image, "/clip.mp4": clip(), "/page.html": []byte("<html><body>Hello</body></html>"), "/empty": nil, "/bomb.png": bomb,
		"/picture.svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.hits.Add(1)
		if h.before != nil {
			h.before(r)
		}
		switch body, known := files[r.URL.Path]; {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/a.png", http.StatusFound)
		case r.URL.Path == "/cut":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write(image)
		case !known:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// keeps checks the number of files in the media store after discarded files are deleted.
func (s *server) keeps(t *testing.T, want int) {
	t.Helper()
	var n int
	for limit := time.After(30 * time.Second); ; {
		n = 0
		err := filepath.WalkDir(s.folder, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				n++
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // deleted meanwhile
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		select {
		case <-limit:
			t.Fatalf("%d files are kept, want %d", n, want)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// submitting returns a body with additional members.
func submitting(t *testing.T, model string, more map[string]any) string {
	t.Helper()
	body := map[string]any{"model": model, "prompt": "a hat"}
	for k, v := range more {
		body[k] = v
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestReferencesAreKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, h := newServer(t, db, nil), newHost(t)
		_, secret := d.key(account.KeySettings{})
		inline := base64.StdEncoding.EncodeToString(picture(t))
		stored := 0
		for _, c := range []struct {
			path, model string
			fields      map[string]any
			files       int
		}{
			{generations, "easel-1", map[string]any{"image": h.url + "/a.png"}, 1},
			{edits, "easel-1", map[string]any{"image": inline, "mask": "data:image/png;base64," + inline}, 2},
			{edits, "easel-1", map[string]any{"image": []string{h.url + "/a.png", inline},
				"images": []any{map[string]any{"image_url": h.url + "/a.png"}}}, 3},
			{videos, "reel-1", map[string]any{"image": inline}, 1},
			{videos, "reel-1", map[string]any{
				"references": []any{h.url + "/a.png", map[string]any{"url": h.url + "/clip.mp4", "type": "video"}}}, 2},
			{videos, "reel-1", map[string]any{"references": []any{base64.StdEncoding.EncodeToString(clip())}, "prompt": nil}, 1},
		} {
			d.send("POST", c.path, submitting(t, c.model, c.fields), as(secret)...).accepted(t)
			stored += c.files
			d.keeps(t, stored)
		}
		if got := h.hits.Load(); got != 5 {
			t.Errorf("%d fetches", got)
		}
	})
}

func TestBadReferences(t *testing.T) {
	t.Parallel()
	d, h := newServer(t, onSQLite(t), nil), newHost(t)
	_, secret := d.key(account.KeySettings{})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	good := base64.StdEncoding.EncodeToString(picture(t))
	for name, c := range map[string]struct {
		path, model string
		fields      map[string]any
		param       string
	}{
		"not there":       {generations, "easel-1", map[string]any{"image": h.url + "/nothing"}, "image"},
		"moved":           {generations, "easel-1", map[string]any{"image": []string{h.url + "/moved"}}, "image[0]"},
		"a page":          {generations, "easel-1", map[string]any{"images": []string{good, h.url + "/page.html"}}, "images[1]"},
		"empty":           {generations, "easel-1", map[string]any{"image": h.url + "/empty"}, "image"},
		"cut":             {generations, "easel-1", map[string]any{"image": h.url + "/cut"}, "image"},
		"a bomb":          {generations, "easel-1", map[string]any{"image": h.url + "/bomb.png"}, "image"},
		"SVG":             {generations, "easel-1", map[string]any{"image": h.url + "/picture.svg"}, "image"},
		"private":         {generations, "easel-1", map[string]any{"image": "http://10.0.0.1/a.png"}, "image"},
		"metadata":        {edits, "easel-1", map[string]any{"image": "http://169.254.169.254/latest/meta-data"}, "image"},
		"in IPv6":         {edits, "easel-1", map[string]any{"image": "http://[::ffff:10.0.0.1]/a.png"}, "image"},
		"nobody there":    {edits, "easel-1", map[string]any{"image": closed.URL}, "image"},
		"with a password": {edits, "easel-1", map[string]any{"image": "http://user:secret@example.com/a.png"}, "image"},
		"no picture": {edits, "easel-1",
			map[string]any{"image": base64.StdEncoding.EncodeToString([]byte("Hello, I am a text."))}, "image"},
		"a clip":     {edits, "easel-1", map[string]any{"image": h.url + "/clip.mp4"}, "image"},
		"a bad mask": {edits, "easel-1", map[string]any{"image": good, "mask": h.url + "/page.html"}, "mask"},
		"a clip as an image": {videos, "reel-1",
			map[string]any{"references": []any{map[string]any{"url": h.url + "/clip.mp4", "type": "image"}}}, "references[0]"},
		"an image as a clip": {videos, "reel-1", map[string]any{"references": []any{map[string]any{"url": h.url + "/a.png", "type": "video"}}},
			"references[0]"},
		"in reference_images": {videos, "reel-1", map[string]any{"reference_images": []any{h.url + "/clip.mp4"}}, "reference_images[0]"},
	} {
		got := d.send("POST", c.path, submitting(t, c.model, c.fields), as(secret)...)
		if param := got.refused(t, 400, "invalid_request"); param != c.param || !strings.Contains(string(got.body), c.param) {
			t.Errorf("%s: param %q: %s", name, param, got.body)
		}
	}
	d.keeps(t, 0)
	if state := accountState(t, d); state.Held != 0 {
		t.Errorf("rejections hold money: %+v", state)
	}
}

// TestPrivateHostsAreNotReached allows no private networks, so the test's server must not be
// reached.
func TestPrivateHostsAreNotReached(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := newServer(t, onSQLite(t), func(o *api.Options) { o.Guard = egress.New(nil) })
	_, secret := d.key(account.KeySettings{})
	port := h.url[strings.LastIndexByte(h.url, ':'):]
	for _, address := range []string{h.url, "http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port,
		"http://2130706433" + port, "http://0x7f.1" + port} {
		got := d.send("POST", generations, submitting(t, "easel-1", map[string]any{"image": address + "/a.png"}), as(secret)...)
		if param := got.refused(t, 400, "invalid_request"); param != "image" {
			t.Errorf("%s: param %q", address, param)
		}
	}
	if h.hits.Load() != 0 {
		t.Error("a private host was reached")
	}
}

// TestMultipartEdits sends forms like the official clients.
func TestMultipartEdits(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	send := func(fields map[string]string, files []string, file []byte, headers ...string) response {
		t.Helper()
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if err := w.WriteField(name, fields[name]); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range files {
			part, err := w.CreateFormFile(name, "a.png")
			if err == nil {
				_, err = part.Write(file)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return d.send("POST", edits, body.String(), append(append(as(secret), "Content-Type", w.FormDataContentType()), headers...)...)
	}
	fields := map[string]string{"model": "easel-1", "prompt": "a hat", "n": "2", "size": "2K", "seed": "7", "quality": "high"}
	first := send(fields, []string{"image[]", "image[]", "mask"}, picture(t), "Idempotency-Key", "a")
	first.accepted(t)
	d.keeps(t, 3)
	if held := accountState(t, d).Held.String(); held != "0.1" {
		t.Errorf("held %s USD", held)
	}
	if again := send(fields, []string{"image[]", "image[]", "mask"}, picture(t), "Idempotency-Key", "a"); again.accepted(t).ID !=
		first.accepted(t).ID {
		t.Error("another boundary creates another job")
	}
	for _, c := range []struct {
		name, value string
		files       []string
		file        []byte
		code, param string
	}{
		{"model", "", []string{"image"}, picture(t), "model_not_found", "model"},
		{"model", "swift-1", []string{"image"}, picture(t), "model_not_found", "model"},
		{"n", "many", nil, nil, "invalid_request", "image"},
		{"prompt", "", []string{"image"}, picture(t), "missing_prompt", "prompt"},
		{"n", "many", []string{"image"}, picture(t), "invalid_request", "n"},
		{"n", "5", []string{"image"}, picture(t), "invalid_request", "n"},
		{"size", "8K", []string{"image"}, picture(t), "unsupported_resolution", "size"},
		{"callback_url", "http://10.0.0.1", []string{"image"}, picture(t), "invalid_callback_url", "callback_url"},
		{"n", "1", []string{"image", "image", "image", "image"}, picture(t), "invalid_request", "image"},
		{"n", "1", []string{"image"}, []byte("Hello, I am a text."), "invalid_request", "image"},
	} {
		changed := maps.Clone(fields)
		changed[c.name] = c.value
		if param := send(changed, c.files, c.file).refused(t, 400, c.code); param != c.param {
			t.Errorf("%s %q: param %q, want %q", c.name, c.value, param, c.param)
		}
	}
	d.send("POST", generations, "--b--", append(as(secret), "Content-Type", "multipart/form-data; boundary=b")...).refused(t, 400,
		"invalid_json")
	d.send("POST", edits, "--b\r\n", append(as(secret), "Content-Type", "multipart/form-data; boundary=b")...).refused(t, 400,
		"invalid_request")
	d.keeps(t, 3)
}

// TestKeyChangesWhileReferencesAreFetched changes the key during a fetch: the submission is checked
// again, and nothing is fetched twice.
func TestKeyChangesWhileReferencesAreFetched(t *testing.T) {
	t.Parallel()
	rpm := int64(100)
	for _, c := range []struct {
		name   string
		edit   func(*account.KeySettings)
		status int
		code   string
		kept   int
	}{
		{"of no concern", func(s *account.KeySettings) { s.RPM = &rpm }, 202, "", 1},
		{"model taken away", func(s *account.KeySettings) { s.AllowedModels = []string{"reel-1"} }, 403, "permission_denied", 0},
		{"disabled", func(s *account.KeySettings) { s.Disabled = true }, 401, "invalid_api_key", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, h := newServer(t, onSQLite(t), nil), newHost(t)
			key, secret := d.key(account.KeySettings{})
			h.before = func(*http.Request) { d.changeKey(key, c.edit) }
			got := d.send("POST", generations, submitting(t, "easel-1", map[string]any{"image": h.url + "/a.png"}), as(secret)...)
			if c.code != "" {
				got.refused(t, c.status, c.code)
			} else {
				got.accepted(t)
			}
			d.keeps(t, c.kept)
			if h.hits.Load() != 1 {
				t.Errorf("%d fetches", h.hits.Load())
			}
		})
	}
}

// TestReferencesOfRefusedSubmissionsAreDiscarded covers rejections by admission, and identical
// submissions: one is admitted and the others get its job, even if the rate allows only one.
func TestReferencesOfRefusedSubmissionsAreDiscarded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, h := newServer(t, db, nil), newHost(t)
		body := submitting(t, "easel-1", map[string]any{"image": h.url + "/a.png"})
		d.send("POST", generations, body, as(d.poorKey())...).refused(t, 402, "insufficient_quota")
		d.keeps(t, 0)
		one := int64(1)
		for i, settings := range []account.KeySettings{{}, {RPM: &one}} {
			_, secret := d.key(settings)
			headers := append(as(secret), "Idempotency-Key", fmt.Sprint("twin-", i))
			var all sync.WaitGroup
			for range 12 {
				all.Go(func() {
					if got := d.send("POST", generations, body, headers...); got.status != 202 {
						t.Errorf("%d %s", got.status, got.body)
					}
				})
			}
			all.Wait()
			d.keeps(t, i+1)
			before := h.hits.Load()
			if d.send("POST", generations, body, headers...).accepted(t); h.hits.Load() != before {
				t.Error("a repetition fetches again")
			}
		}
	})
}

// TestNoFetchBeforeRejection submits jobs that admission would reject: their references are not
// fetched, nothing is stored, and response and log equal those of a submission without references.
func TestNoFetchBeforeRejection(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, h := newServer(t, db, nil), newHost(t)
		broke := d.poorKey()
		one, cent := int64(1), money.USD/100
		_, rated := d.key(account.KeySettings{RPM: &one})
		_, frugal := d.key(account.KeySettings{DailyBudget: &cent})
		_, limited := d.key(account.KeySettings{TotalLimit: &cent})
		_, good := d.key(account.KeySettings{})
		d.send("POST", generations, hat, as(rated)...).accepted(t)
		inline := base64.StdEncoding.EncodeToString(picture(t))
		for _, c := range []struct {
			name, secret string
			status       int
			code         string
		}{
			{"no balance", broke, 402, "insufficient_quota"},
			{"daily budget", frugal, 402, "insufficient_quota"},
			{"total limit", limited, 402, "insufficient_quota"},
			{"rate", rated, 429, "rate_limit_exceeded"},
		} {
			plain := d.send("POST", generations, hat, as(c.secret)...)
			plain.refused(t, c.status, c.code)
			for _, image := range []string{h.url + "/a.png", h.url + "/nothing", inline, "data:image/png;base64," + inline} {
				got := d.send("POST", generations, submitting(t, "easel-1", map[string]any{"image": image}), as(c.secret)...)
				got.refused(t, c.status, c.code)
				if want := plain.header.Get("x-should-retry"); got.header.Get("x-should-retry") != want || got.header.Get("Retry-After") != "" {
					t.Errorf("%s: the headers are %v", c.name, got.header)
				}
				if c.status == 402 && string(got.body) != string(plain.body) { // a 429 contains the time
					t.Errorf("%s: %s; want %s", c.name, got.body, plain.body)
				}
			}
		}
		if got := h.hits.Load(); got != 0 {
			t.Errorf("%d fetches", got)
		}
		d.keeps(t, 0)
		d.send("POST", generations, submitting(t, "easel-1", map[string]any{"image": h.url + "/nothing", "n": 9}), as(broke)...).refused(t, 400,
			"invalid_request")
		d.send("POST", generations, submitting(t, "easel-1", map[string]any{"image": h.url + "/a.png"}), as(good)...).accepted(t)
		d.closeBooks()
		codes := map[string]int{}
		for _, row := range d.requests() {
			codes[row.Code]++
			if row.Code == "insufficient_quota" && (row.Model != "easel-1" || row.Endpoint != generations || row.Status != 402) {
				t.Errorf("row %+v", row)
			}
		}
		if want := map[string]int{"insufficient_quota": 15, "rate_limit_exceeded": 5, "invalid_request": 1}; !maps.Equal(codes, want) {
			t.Errorf("the request log has %v, want %v", codes, want)
		}
	})
}

// TestBodiesCountWhileReferencesAreFetched has a large submission wait for a slow host. Its body
// counts against the memory budget until the response.
func TestBodiesCountWhileReferencesAreFetched(t *testing.T) {
	t.Parallel()
	const largest = 200 << 10 // the budget allows an account one such body
	d, h := newServer(t, onSQLite(t), func(o *api.Options) { o.MaxBody, o.BodyMemory = largest, 1 }), newHost(t)
	_, secret := d.key(account.KeySettings{})
	asked, goOn := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(answer) // the servers wait for the answer, even after a failed test
	h.before = func(*http.Request) { close(asked); <-goOn }
	large := strings.Repeat(" ", 150<<10)
	var slow response
	var waiting sync.WaitGroup
	waiting.Go(func() {
		slow = d.send("POST", generations, submitting(t, "easel-1", map[string]any{"image": h.url + "/a.png"})+large, as(secret)...)
	})
	<-asked
	d.send("POST", generations, hat+large, as(secret)...).refused(t, 503, "service_unavailable")
	d.send("POST", generations, hat, as(secret)...).accepted(t)
	answer()
	waiting.Wait()
	slow.accepted(t)
	// The body's memory is released shortly after the client has the response.
	for limit := time.After(30 * time.Second); d.send("POST", generations, hat+large, as(secret)...).status != 202; {
		select {
		case <-limit:
			t.Fatal("the body's memory is not released")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestStoreAway removes the media store's folder, an internal failure.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	if err := os.RemoveAll(d.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.folder, []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	body := submitting(t, "easel-1", map[string]any{"image": base64.StdEncoding.EncodeToString(picture(t))})
	got := d.send("POST", generations, body, as(secret)...)
	if param := got.refused(t, 503, "service_unavailable"); param != "" || strings.Contains(string(got.body), d.folder) {
		t.Errorf("param %q: %s", param, got.body)
	}
	if !strings.Contains(d.log.String(), got.header.Get("x-request-id")) || accountState(t, d).Held != 0 {
		t.Errorf("held %s, log %s", accountState(t, d).Held, d.log)
	}
	d.send("POST", generations, hat, as(secret)...).accepted(t) // needs no files
}

// TestLeavingWhileReferencesAreFetched ends the fetch with the request.
func TestLeavingWhileReferencesAreFetched(t *testing.T) {
	t.Parallel()
	d, h := newServer(t, onSQLite(t), nil), newHost(t)
	_, secret := d.key(account.KeySettings{})
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	h.before = func(r *http.Request) {
		leave()
		<-r.Context().Done()
		close(ended)
	}
	r, err := http.NewRequestWithContext(ctx, "POST", d.server.URL+generations,
		strings.NewReader(submitting(t, "easel-1", map[string]any{"image": h.url + "/a.png"})))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if answer, err := http.DefaultClient.Do(r); err == nil {
		answer.Body.Close()
		t.Errorf("status %d", answer.StatusCode)
	}
	<-ended
	d.server.Close() // waits for the request
	d.keeps(t, 0)
	if strings.Contains(d.log.String(), "level=ERROR") {
		t.Errorf("log %s", d.log)
	}
}
