package jobs

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// pictures is the 200 of a client that waited, in OpenAI's shape.
type pictures struct {
	Created int64
	Data    []struct {
		URL    string
		Base64 string `json:"b64_json"`
	}
	Usage map[string]any
}

// readPictures checks the 200 of a client that waited.
func readPictures(t testing.TB, r scene.Reply, count int) (p pictures) {
	t.Helper()
	if err := json.Unmarshal(r.Raw, &p); err != nil || r.Status != http.StatusOK || len(p.Data) != count || p.Created == 0 ||
		p.Usage["images"] != float64(count) || p.Usage["total_tokens"] != float64(0) ||
		!strings.HasPrefix(r.Header.Get("Location"), "/v1/images/jobs/job_") {
		t.Fatalf("a waiting client got %v %s, want 200 and %d pictures", r.Header, r, count)
	}
	return p
}

// waiting returns a client with a key of the same account that waits for pictures.
func waiting(c *scene.Customer) *scene.Customer {
	var k struct{ Key string }
	c.Admin("POST", "/accounts/"+c.ID+"/keys", map[string]any{"wait_for_pictures": true}, &k)
	return &scene.Customer{Node: c.Node, ID: c.ID, Key: k.Key}
}

// waitingClients plays the clients that expect pictures in the response to their submission.
func waitingClients(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	fal := fakestudio.ProviderOf(t, "fal")
	s := fal.Open(t)
	p.SetCatalog([]map[string]any{scene.ImageModel("easel", map[string]any{"max_images": 4})},
		[]map[string]any{fal.JobLine("easel", s, "image", nil, "easel")})
	plain := p.Customer()
	c := waiting(plain)
	request := scene.JobRequest("easel", "a hat", map[string]any{"n": 2})

	// A client that names no format gets both.
	for _, d := range readPictures(t, c.Call(t, "POST", scene.PathGenerate, request), 2).Data {
		raw, err := base64.StdEncoding.DecodeString(d.Base64)
		if r := c.Call(t, "GET", c.LinkHere(d.URL), nil); r.Status != http.StatusOK || err != nil || !bytes.Equal(r.Raw, raw) {
			t.Errorf("the link %s answers %d; the base64 %.40q with error %v; want the same picture", d.URL, r.Status, d.Base64, err)
		}
	}
	linked := scene.JobRequest("easel", "a hat", map[string]any{"response_format": "url"})
	if d := readPictures(t, c.Call(t, "POST", scene.PathGenerate, linked), 1).Data[0]; d.URL == "" || d.Base64 != "" {
		t.Errorf("%+v, want a link alone", d)
	}
	readPictures(t, plain.Call(t, "POST", scene.PathGenerate, request, "Prefer", "wait=60"), 2)

	inline := scene.JobRequest("easel", "a hat", map[string]any{"response_format": "b64_json"})
	once := []string{"Idempotency-Key", "hat"}
	first := c.Call(t, "POST", scene.PathGenerate, inline, once...)
	again := c.Call(t, "POST", scene.PathGenerate, inline, once...)
	for _, r := range []scene.Reply{first, again} {
		d := readPictures(t, r, 1).Data[0]
		raw, err := base64.StdEncoding.DecodeString(d.Base64)
		if err != nil || d.URL != "" || !strings.HasPrefix(http.DetectContentType(raw), "image/") {
			t.Errorf("%v: %.40q is not a picture in base64", err, d.Base64)
		}
	}
	if !bytes.Equal(first.Raw, again.Raw) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("a repetition gets another picture, or is not marked")
	}
	if r := plain.Call(t, "POST", scene.PathGenerate, inline); r.Status != http.StatusBadRequest || r.Err(t).Param() != "response_format" {
		t.Errorf("base64 without a wait: %s, want 400 at response_format", r)
	}

	edit := scene.JobRequest("easel", "a blue hat", map[string]any{"image": dataURI(fakestudio.Picture(3)), "response_format": "b64_json"})
	if d := readPictures(t, c.Call(t, "POST", scene.PathEdit, edit), 1).Data[0]; d.Base64 == "" {
		t.Error("an edit has no base64")
	}

	unsafe, code := fal.Unsafe("image")
	s.Expect(unsafe)
	if r := c.Call(t, "POST", scene.PathGenerate, request); r.Status != http.StatusBadRequest || r.Err(t).Code != code ||
		!bytes.Contains(r.Raw, []byte(`"job":"job_`)) {
		t.Errorf("a rejected prompt: %s, want 400 %s", r, code)
	}
	c.CheckFunds(t, 7*scene.PricePicture, 0)

	slow(t, c, s)
	p.Audit(t)
}

// slow plays a client whose picture is not ready in time, and one that leaves. Their jobs go on.
func slow(t *testing.T, c *scene.Customer, s fakestudio.Fake) {
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	before := s.AcceptedCount()
	s.Expect(fakestudio.Behaviour{Until: open}, fakestudio.Behaviour{Until: open})
	r := c.Call(t, "POST", scene.PathGenerate, scene.JobRequest("easel", "a slow hat", nil), "Prefer", "wait=1")
	ids := []string{c.CheckAccepted(t, "image", r)}
	if r.Header.Get("Preference-Applied") != "wait=1" || r.Header.Get("Retry-After") == "" {
		t.Errorf("headers %v, want Preference-Applied: wait=1 and Retry-After", r.Header)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		res, err := scene.Do(ctx, c.Client, "POST", c.URL+scene.PathGenerate, string(scene.JobRequest("easel", "a left hat", nil)),
			"Authorization", "Bearer "+c.Key)
		if err == nil {
			err = fmt.Errorf("the client got %s", res.Status)
			_ = res.Body.Close()
		} else {
			err = nil
		}
		left <- err
	}()
	scene.Eventually(t, "the second job is submitted", func() bool { return s.AcceptedCount() == before+2 })
	leave()
	if err := <-left; err != nil {
		t.Error(err)
	}
	for _, o := range c.JobsOf(t, c.ID) {
		if !o.Final() && o.ID != ids[0] {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) != 2 {
		t.Fatalf("%d jobs run, want 2", len(ids))
	}
	release()
	for _, id := range ids {
		c.Becomes(t, "image", id, "succeeded")
	}
	c.CheckFunds(t, 9*scene.PricePicture, 0)
}

// killsWhileClientsWait kills a node while its clients wait. A client that repeats its submission
// with the same Idempotency-Key on the next node gets its picture, and pays once. On PostgreSQL, a
// client of another node gets its picture in any case.
func killsWhileClientsWait(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, nil)
	fal := fakestudio.ProviderOf(t, "fal")
	s := fal.Open(t)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	s.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: open} })
	p.SetCatalog([]map[string]any{scene.ImageModel("easel", nil)}, []map[string]any{fal.JobLine("easel", s, "image", nil, "easel")})
	c := waiting(p.Customer())
	type result struct {
		scene.Reply
		err error
	}
	send := func(c *scene.Customer, name string) <-chan result {
		end := make(chan result, 1)
		go func() {
			r, err := c.Try("POST", scene.PathGenerate, scene.JobRequest("easel", name, nil), "Idempotency-Key", name)
			end <- result{r, err}
		}()
		return end
	}
	cut := send(c, "cut")
	jobs, elsewhere := 1, (<-chan result)(nil)
	var other *scene.Node
	if strings.HasPrefix(database, "postgres") {
		other = p.Second()
		jobs, elsewhere = 2, send(c.On(other), "elsewhere")
	}
	scene.Eventually(t, "the provider has the jobs", func() bool { return s.AcceptedCount() == jobs })
	p.Kill()
	if r := <-cut; r.err == nil {
		t.Errorf("the client of a killed node got %s", r.Reply)
	}
	if other == nil {
		p.Restart()
	} else {
		p.Process = other.Process
	}
	again := send(c.On(p), "cut")
	release()
	readPictures(t, (<-again).Reply, 1)
	if elsewhere != nil {
		readPictures(t, (<-elsewhere).Reply, 1)
	}
	c.CheckFunds(t, money.Amount(jobs)*scene.PricePicture, 0)
	if n := len(c.Charges(t)); n != jobs {
		t.Errorf("%d charges, want %d", n, jobs)
	}
	p.Audit(t)
}

// stopWhileClientsWait stops a node while a client waits. The client gets its 202 before the end of
// the grace, and the next start ends the job.
func stopWhileClientsWait(t *testing.T, binary, database string) {
	p := scene.NewNode(t, binary, database, map[string]string{"shutdown_grace": "4s"})
	fal := fakestudio.ProviderOf(t, "fal")
	s := fal.Open(t)
	open := make(chan struct{})
	release := sync.OnceFunc(func() { close(open) })
	defer release()
	s.Always(func([]byte) fakestudio.Behaviour { return fakestudio.Behaviour{Until: open} })
	p.SetCatalog([]map[string]any{scene.ImageModel("easel", nil)}, []map[string]any{fal.JobLine("easel", s, "image", nil, "easel")})
	c := waiting(p.Customer())
	end := make(chan scene.Reply, 1)
	go func() {
		r, err := c.Try("POST", scene.PathGenerate, scene.JobRequest("easel", "a hat", nil))
		if err != nil {
			t.Error(err)
		}
		end <- r
	}()
	scene.Eventually(t, "the provider has the job", func() bool { return s.AcceptedCount() == 1 })
	p.CheckStop(t)
	id := c.CheckAccepted(t, "image", <-end)
	release()
	p.Restart()
	c.On(p).Becomes(t, "image", id, "succeeded")
	p.Audit(t)
}
