package fakestudio

import (
	_ "embed" // for clip.mp4
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// FilesHost is the host of the results. It differs from the host of the API, so a gateway may connect
// to it only if private_networks lists it.
const FilesHost = "127.0.0.3"

//go:embed clip.mp4
var clip string

// Clip returns a small MP4 file: one second of grey, 16 by 16 pixels, in H.264 baseline, with the
// index before the data.
func Clip() []byte { return []byte(clip) }

// clipURL returns the address of a task's clip.
func (s *Studio) clipURL(t *task) string { return s.files.URL + "/" + t.ticket + "/0.mp4" }

// pictureURL returns the address of Picture(n) as a result of a task.
func (s *Studio) pictureURL(t *task, n int) string {
	return fmt.Sprintf("%s/%s/%d.png", s.files.URL, t.ticket, n)
}

// pictures returns a JSON value for the address of each picture of a task.
func (s *Studio) pictures(t *task, value func(url string) any) []any {
	all := []any{}
	for n := range t.images {
		all = append(all, value(s.pictureURL(t, n)))
	}
	return all
}

// file serves the results at the addresses of clipURL and pictureURL. A request with a credential
// fails the test, because the host of the results is not the provider.
func (s *Studio) file(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization")+r.Header.Get("X-Key")+r.Header.Get("Api-Key") != "" {
		s.t.Error("fake studio: the host of the results got a credential")
	}
	ticket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	number, isPicture := strings.CutSuffix(name, ".png")
	n, err := strconv.Atoi(number)
	switch {
	case isPicture && err == nil:
		s.serve(w, r, ticket, "image/png", Picture(n))
	case strings.HasSuffix(name, ".mp4"):
		s.serve(w, r, ticket, "video/mp4", Clip())
	default:
		s.unknownRoute(w, r)
	}
}

// serve serves a result according to the behaviour of its task.
func (s *Studio) serve(w http.ResponseWriter, r *http.Request, ticket, contentType string, file []byte) {
	s.mu.Lock()
	t := s.tasks[ticket]
	bad, cut := false, false
	if t != nil && t.BadLinks > 0 {
		t.BadLinks--
		bad = true
	} else if t != nil && t.CutLinks > 0 {
		t.CutLinks--
		cut = true
	}
	s.mu.Unlock()
	switch {
	case t == nil:
		http.NotFound(w, r)
		return
	case !await(r, t.Links):
		return
	case bad:
		http.Error(w, "expired", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", fmt.Sprint(len(file)))
	if !cut {
		_, _ = w.Write(file)
		return
	}
	_, _ = w.Write(file[:len(file)/2])
	_ = http.NewResponseController(w).Flush()
	reset(w)
}
