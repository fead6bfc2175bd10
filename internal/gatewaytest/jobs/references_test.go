package jobs

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"maps"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// gallery is a server of good and bad references.
type gallery struct {
	address string // http://HOST:PORT
	hits    atomic.Int64
}

// newGallery starts a gallery on a loopback address, with redirects to vault.
func newGallery(t testing.TB, on, vault string) *gallery {
	t.Helper()
	listener, err := net.Listen("tcp", on+":0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gallery{address: "http://" + listener.Addr().String()}
	files := map[string][]byte{
		"/p.png": fakestudio.Picture(3), "/no-extension": fakestudio.Picture(4), "/p.jpg": photo(t), "/clip.mp4": fakestudio.Clip(),
		"/drawing.svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>1</script></svg>`),
		"/page.png":    []byte("<!DOCTYPE html><title>no</title>"), "/text.png": []byte("just words"), "/empty.png": nil,
		"/bomb.png": bomb(60_000, 60_000), "/half.png": fakestudio.Picture(3)[:60],
		"/both.png": append(fakestudio.Picture(3), "<html><script>"...),
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.hits.Add(1)
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("the host of a reference got credentials: %v", r.Header)
		}
		file, ok := files[r.URL.Path]
		switch {
		case r.URL.Path == "/redirect":
			http.Redirect(w, r, vault+"/p.png", http.StatusFound)
		case r.URL.Path == "/redirect-here":
			http.Redirect(w, r, "/p.png", http.StatusMovedPermanently)
		case r.URL.Path == "/private":
			http.Error(w, "sign in", http.StatusForbidden)
		case r.URL.Path == "/huge.png":
			w.Header().Set("Content-Length", "99999999999")
			_, _ = w.Write(fakestudio.Picture(3))
		case r.URL.Path == "/endless.png":
			chunk := bytes.Repeat([]byte{7}, 1<<20)
			for err := error(nil); err == nil; {
				_, err = w.Write(chunk)
			}
		case r.URL.Path == "/slow.png":
			_, _ = w.Write(fakestudio.Picture(3)[:20])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case r.URL.Path == "/packed.png":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(fakestudio.Picture(3))
		case ok:
			_, _ = w.Write(file)
		default:
			http.NotFound(w, r)
		}
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return g
}

// photo returns a small JPEG.
func photo(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, 64, 48)), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bomb returns a PNG of a few bytes with a huge size in its header.
func bomb(width, height uint32) []byte {
	small := fakestudio.Picture(0)
	out := append([]byte(nil), small...)
	binary.BigEndian.PutUint32(out[16:], width)
	binary.BigEndian.PutUint32(out[20:], height)
	binary.BigEndian.PutUint32(out[29:], crc32.ChecksumIEEE(out[12:29]))
	return out
}

// references submits jobs with references of every kind. The gateway may fetch references from a
// single loopback address only. A server on another loopback address must get no request.
func references(t *testing.T, binary, database string) {
	vault := newGallery(t, "127.0.0.1", "")
	allowed := newGallery(t, "127.0.0.2", vault.address)
	p := scene.NewNode(t, binary, database, map[string]string{"private_networks": "127.0.0.2/32"})
	fal := fakestudio.ProviderOf(t, "fal")
	s := fal.Open(t)
	unable, able := fakestudio.NewXAI(t), fakestudio.NewKling(t)
	framed := map[string]any{"roles": []string{"first_frame", "last_frame"}, "audio": "optional"}
	p.SetCatalog([]map[string]any{scene.ImageModel("easel", nil), scene.VideoModel("reel", nil), scene.VideoModel("framed", framed)},
		[]map[string]any{
			fal.JobLine("pictures", s, "image", nil, "easel"), fal.JobLine("clips", s, "video", nil, "reel"),
			roleLine("unable", "xai", unable.URL(), "grok-imagine-video", 1), roleLine("able", "kling", able.URL(), "kling-3.0", 2)})
	var all sync.WaitGroup
	all.Go(func() { rolesOfReferences(t, p, unable, able) })
	all.Go(func() { goodReferences(t, p, s, allowed) })
	all.Go(func() { badReferences(t, p, allowed, vault) })
	all.Go(func() { resultAsReference(t, p) })
	all.Wait()
	if n := vault.hits.Load(); n != 0 {
		t.Errorf("the forbidden server got %d requests", n)
	}
	db := scene.OpenDatabase(t, database)
	scene.Eventually(t, "the references are deleted", func() bool { return kept(t, db) == 0 })
	p.Audit(t)
}

// roleLine returns a line of the model framed.
func roleLine(id, provider, address, model string, priority int) map[string]any {
	return map[string]any{"id": id, "provider": provider, "base_url": address, "api_key": "${FAILING_LINE_KEY}", "priority": priority,
		"models": map[string]string{"framed": model}}
}

// rolesOfReferences submits a clip with frames and sound. A line without these features gets no
// request, and the next line gets the frames and the sound. Features missing in the model are
// rejected.
func rolesOfReferences(t *testing.T, p *scene.Node, unable *fakestudio.XAI, able *fakestudio.Kling) {
	c := p.Customer()
	first, last := fakestudio.Picture(5), fakestudio.Picture(6)
	frames := func(more map[string]any) []byte {
		order := map[string]any{"duration": scene.ClipSeconds, "last_frame": dataURI(last), "audio": true,
			"images": []any{map[string]any{"url": dataURI(first), "role": "first_frame"}}}
		maps.Copy(order, more)
		return scene.JobRequest("framed", "a boat", order)
	}
	id := c.Submit(t, "video", frames(nil))
	c.Becomes(t, "video", id, "succeeded")
	sent := able.Submissions()
	if len(sent) != 1 || len(unable.Submissions()) != 0 || sent[0].Path != "/image-to-video/kling-3.0" {
		t.Fatalf("%d submissions, %d to the line without the features: %+v", len(sent), len(unable.Submissions()), sent)
	}
	for _, want := range []string{`{"type":"first_frame","url":"` + dataURI(first), `{"type":"last_frame","url":"` + dataURI(last),
		`"audio":"native"`} {
		if !bytes.Contains(sent[0].Body, []byte(want)) {
			t.Errorf("the request lacks %.60s", want)
		}
	}
	for param, more := range map[string]map[string]any{"seed": {"seed": 7}, "negative_prompt": {"negative_prompt": "fog"},
		"references[0]": {"last_frame": nil, "references": []any{map[string]any{"url": dataURI(last), "role": "reference"}}}} {
		r := c.Call(t, "POST", scene.PathOf("video"), frames(more))
		if r.Status != http.StatusBadRequest || !bytes.Contains(r.Raw, []byte(`"param":"`+param+`"`)) {
			t.Errorf("%s: %s", param, r)
		}
	}
	c.CheckFunds(t, scene.PriceClip, 0)
}

// kept returns the number of stored files that are neither results nor deleted.
func kept(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM media_file WHERE state IN ('kept', 'adopted')`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// referenceCase is a valid submission with references.
type referenceCase struct {
	name, kind, path string
	body             []byte
	contentType      string
	files            [][]byte // in the provider's request
}

// resultAsReference sends the link of a result as a reference. The gateway may not fetch references
// from its own address, so it reads the file from its media store.
func resultAsReference(t *testing.T, p *scene.Node) {
	c := p.Customer()
	first := c.Becomes(t, "image", c.Submit(t, "image", scene.JobRequest("easel", "a cat", nil)), "succeeded")
	link := first.Data[0].URL
	for address, want := range map[string]int{link: http.StatusAccepted, strings.Replace(link, ".png", ".jpg", 1): http.StatusBadRequest,
		strings.Replace(link, "/media/", "/healthz/", 1): http.StatusBadRequest, p.URL + "/healthz": http.StatusBadRequest} {
		r := c.Call(t, "POST", scene.PathEdit, scene.JobRequest("easel", "a hat", map[string]any{"image": address}))
		if r.Status != want {
			t.Errorf("%s: %s", address, r)
			continue
		}
		if r.Status == http.StatusAccepted {
			c.Becomes(t, "image", c.CheckAccepted(t, "image", r), "succeeded")
		}
	}
}

func goodReferences(t *testing.T, p *scene.Node, s fakestudio.Fake, g *gallery) {
	c := p.Customer()
	picture, other := fakestudio.Picture(3), fakestudio.Picture(4)
	plain := base64.StdEncoding.EncodeToString(picture)
	edit := func(name string, more map[string]any, files ...[]byte) referenceCase {
		return referenceCase{name: name, kind: "image", path: scene.PathEdit, body: scene.JobRequest("easel", name+".", more),
			contentType: "application/json", files: files}
	}
	video := func(name string, more map[string]any, files ...[]byte) referenceCase {
		return referenceCase{name: name, kind: "video", path: scene.PathVideo, body: scene.JobRequest("reel", name+".", more),
			contentType: "application/json", files: files}
	}
	generation := edit("generation with an image", map[string]any{"image": plain}, picture)
	generation.path = scene.PathGenerate
	form := func(name string, fill func(f *multipart.Writer)) referenceCase {
		var body bytes.Buffer
		f := multipart.NewWriter(&body)
		for field, value := range map[string]string{"model": "easel", "prompt": name + ".", "n": "1", "size": "16:9"} {
			_ = f.WriteField(field, value) // cannot fail
		}
		fill(f)
		_ = f.Close()
		return referenceCase{name: name, kind: "image", path: scene.PathEdit, body: body.Bytes(), contentType: f.FormDataContentType()}
	}
	one := form("form with a file", func(f *multipart.Writer) { part(f, "image", picture) })
	one.files = [][]byte{picture}
	many := form("form with files", func(f *multipart.Writer) {
		part(f, "image[]", picture)
		part(f, "image[]", other)
	})
	many.files = [][]byte{picture, other}
	masked := form("form with a mask", func(f *multipart.Writer) {
		part(f, "image", picture)
		part(f, "mask", other)
	})
	masked.files = [][]byte{picture, other}
	cases := []referenceCase{
		generation, one, many, masked,
		edit("address", map[string]any{"image": g.address + "/p.png"}, picture),
		edit("address without extension", map[string]any{"image": g.address + "/no-extension?x=1#y"}, other),
		edit("JPEG", map[string]any{"image": g.address + "/p.jpg"}, photo(t)),
		edit("data URI", map[string]any{"image": dataURI(picture)}, picture),
		edit("data URI of a wrong type", map[string]any{"image": strings.Replace(dataURI(picture), "image/png", "text/plain", 1)}, picture),
		edit("base64", map[string]any{"image": plain}, picture),
		edit("base64 for addresses", map[string]any{"image": base64.RawURLEncoding.EncodeToString(picture)}, picture),
		edit("list", map[string]any{"image": []string{plain, g.address + "/no-extension"}}, picture, other),
		edit("images", map[string]any{"images": []string{dataURI(other), plain}}, other, picture),
		edit("objects", map[string]any{
			"images": []any{map[string]any{"url": g.address + "/p.png"}, map[string]any{"image_url": plain}}}, picture),
		edit("image and mask", map[string]any{"image": plain, "mask": dataURI(other)}, picture, other),
		video("video from an image", map[string]any{"image": plain}, picture),
		video("video, reference_images", map[string]any{"reference_images": []string{plain}}, picture),
		video("video from a video", map[string]any{"references": []any{map[string]any{"type": "video", "url": g.address + "/clip.mp4"}}},
			fakestudio.Clip()),
	}
	ids := make([]string, len(cases))
	for i, a := range cases {
		r := c.Call(t, "POST", a.path, a.body, "Content-Type", a.contentType)
		if r.Status != http.StatusAccepted {
			t.Errorf("%s: %s", a.name, r)
			continue
		}
		ids[i] = c.CheckAccepted(t, a.kind, r)
	}
	for i, a := range cases {
		if ids[i] != "" {
			c.Becomes(t, a.kind, ids[i], "succeeded")
		}
		sent := 0
		for _, sub := range s.Submissions() {
			if !bytes.Contains(sub.Body, []byte(`"`+a.name+`."`)) {
				continue
			}
			sent++
			for _, want := range a.files {
				if !bytes.Contains(sub.Body, []byte(base64.StdEncoding.EncodeToString(want))) {
					t.Errorf("%s: the provider got %.300s", a.name, sub.Body)
				}
			}
			if bytes.Contains(sub.Body, []byte(g.address)) || bytes.Contains(sub.Body, []byte(p.URL)) {
				t.Errorf("%s: the provider got an address: %.300s", a.name, sub.Body)
			}
		}
		if sent != 1 {
			t.Errorf("%s: submitted %d times", a.name, sent)
		}
	}
}

// part adds a file to a form.
func part(f *multipart.Writer, field string, file []byte) {
	w, _ := f.CreatePart(textproto.MIMEHeader{ // cannot fail
		"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename="x.png"`, field)}, "Content-Type": {"image/png"}})
	_, _ = w.Write(file)
}

// badReferences submits bad references. Each is rejected with the name of the field and a helpful
// message. No job is created.
func badReferences(t *testing.T, p *scene.Node, g, vault *gallery) {
	c := p.Customer()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(vault.address, "http://"))
	bad := map[string]string{
		"svg": g.address + "/drawing.svg", "page": g.address + "/page.png", "text": g.address + "/text.png", "empty": g.address + "/empty.png",
		"bomb": g.address + "/bomb.png", "cut off": g.address + "/half.png", "404": g.address + "/nothing", "403": g.address + "/private",
		"redirect": g.address + "/redirect", "redirect here": g.address + "/redirect-here", "too large": g.address + "/huge.png",
		"endless": g.address + "/endless.png", "slow": g.address + "/slow.png", "packed": g.address + "/packed.png",
		"a video":   g.address + "/clip.mp4",
		"no base64": "***", "empty text": "", "data URI without base64": "data:image/png,abc", "bomb inline": dataURI(bomb(50_000, 50_000)),
		"page inline": dataURI([]byte("<!DOCTYPE html><title>no</title>")), "ftp": "ftp://example.com/p.png", "file": "file:///etc/hostname",
		"no host": "http:///p.png", "user": "http://me:secret@example.com/p.png", "port 0": "http://example.com:0/p.png",
		"closed port": "http://127.0.0.2:1/p.png", "long": "http://example.com/" + strings.Repeat("x", 2000),
	}
	for _, host := range []string{
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.0.0.1.", "localhost", "LocalHost.",
		"a.localhost",
		"[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::1]",
		"0.0.0.0", "0", "[::]", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "[fe80::1%25lo]", "[fd00::1]",
		"224.0.0.1",
		"255.255.255.255", "127.0.0.9", "①②⑦.0.0.1", "127。0。0。1", "%31%32%37.0.0.1",
	} {
		bad["host "+host] = "http://" + host + ":" + port + "/p.png"
	}
	queue := make(chan string)
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for name := range queue {
				r := c.Call(t, "POST", scene.PathEdit, scene.JobRequest("easel", "x", map[string]any{"image": bad[name]}))
				e := r.Err(t)
				if r.Status != 400 || e.Code != "invalid_request" || e.Type != "invalid_request_error" || e.Param() != "image" || len(e.Message) < 20 ||
					!strings.Contains(e.Message, "image") || strings.Contains(e.Message, "127.0.0.") {
					t.Errorf("%s: %s", name, r)
				}
			}
		})
	}
	queue <- "slow" // first, because it takes longest
	for name := range bad {
		if name != "slow" {
			queue <- name
		}
	}
	close(queue)
	workers.Wait()
	for _, tt := range []struct {
		path, members, param string
	}{
		{scene.PathEdit, `"image":["` + base64.StdEncoding.EncodeToString(fakestudio.Picture(0)) + `","` + vault.address + `/p.png"]`,
			"image[1]"},
		{scene.PathGenerate, `"images":[{"url":"` + vault.address + `/p.png"}]`, "images[0]"},
		{scene.PathEdit, `"image":"` + base64.StdEncoding.EncodeToString(fakestudio.Picture(0)) + `","mask":"` + g.address + `/nothing"`, "mask"},
		{scene.PathEdit, `"image":7`, "image"}, {scene.PathEdit, `"image":{}`, "image"}, {scene.PathEdit, `"image":[]`, "image"},
		{scene.PathEdit, `"image":null`, "image"},
		{scene.PathGenerate, `"mask":"aaaa"`, "mask"},
	} {
		r := c.Call(t, "POST", tt.path, []byte(`{"model":"easel","prompt":"x",`+tt.members+`}`))
		if e := r.Err(t); r.Status != 400 || e.Code != "invalid_request" || e.Param() != tt.param {
			t.Errorf("%s: %s; want the param %s", tt.members, r, tt.param)
		}
	}
	c.CheckFunds(t, 0, 0)
	if jobs := c.JobsOf(t, c.ID); len(jobs) != 0 {
		t.Errorf("%d jobs from rejected submissions", len(jobs))
	}
}

// dataURI returns a picture as a data URI.
func dataURI(picture []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)
}
