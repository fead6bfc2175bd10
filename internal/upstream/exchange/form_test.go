package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// formLine returns a client of a line to a server.
func formLine(t *testing.T, handle http.HandlerFunc) *exchange.Client {
	t.Helper()
	server := httptest.NewServer(handle)
	transport := exchange.NewTransport()
	t.Cleanup(server.Close)
	t.Cleanup(transport.CloseIdleConnections)
	line, err := exchange.Open(upstream.Target{Line: "main", BaseURL: server.URL},
		upstream.Info{CheckOptions: exchange.NoOptions("x")}, transport)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// file returns a reference whose reader returns single bytes. open counts the open readers.
func file(content string, open *atomic.Int64) jobcall.Reference {
	return jobcall.Reference{Type: "image/png", Size: int64(len(content)), Open: func(context.Context) (io.ReadCloser, error) {
		open.Add(1)
		return &counted{iotest.OneByteReader(strings.NewReader(content)), open}, nil
	}}
}

type counted struct {
	io.Reader
	open *atomic.Int64
}

func (c *counted) Close() error {
	c.open.Add(-1)
	return nil
}

func TestForm(t *testing.T) {
	t.Parallel()
	var (
		got    *multipart.Form
		length int64
		open   atomic.Int64
	)
	line := formLine(t, func(w http.ResponseWriter, r *http.Request) {
		length = r.ContentLength
		if err := r.ParseMultipartForm(1 << 20); err != nil {
			t.Error(err)
		}
		got = r.MultipartForm
		w.WriteHeader(http.StatusOK)
	})
	form := exchange.NewForm()
	form.Field("first", "1\r\n--x")
	form.File("image[]", `a"b.png`, file("one", &open))
	form.File("image[]", "empty.png", file("", &open))
	form.Field("last", "ü")
	form.File("mask", "m.png", file(strings.Repeat("z", 5000), &open))
	for range 2 { // a form can be sent again
		reply, err := line.Submit(t.Context(), exchange.JobCall{Method: http.MethodPost, URL: line.URL("x"), Form: form, Limit: 1})
		if err != nil || !reply.OK() {
			t.Fatal(reply, err)
		}
		if length <= 5000 || len(got.File["image[]"]) != 2 || got.File["mask"][0].Size != 5000 || got.File["image[]"][0].Filename != `a"b.png` {
			t.Errorf("%d bytes, %+v", length, got.File)
		}
		if got.Value["first"][0] != "1\r\n--x" || got.Value["last"][0] != "ü" || got.File["mask"][0].Header.Get("Content-Type") != "image/png" {
			t.Errorf("%+v", got.Value)
		}
		f, err := got.File["image[]"][0].Open()
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := io.ReadAll(f); string(data) != "one" {
			t.Errorf("%q", data)
		}
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
}

// TestFormUnread tests that an unreadable file of the gateway is not the line's failure, and that
// the provider has not received the whole request.
func TestFormUnread(t *testing.T) {
	t.Parallel()
	line := formLine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusOK)
	})
	var open atomic.Int64
	short := file("abc", &open)
	short.Size = 4
	broken := file("abc", &open)
	broken.Open = func(context.Context) (io.ReadCloser, error) {
		open.Add(1)
		return &counted{io.MultiReader(bytes.NewReader([]byte("a")), iotest.ErrReader(errors.New("disk"))), &open}, nil
	}
	gone := file("abc", &open)
	gone.Open = func(context.Context) (io.ReadCloser, error) { return nil, errors.New("no such file") }
	for name, r := range map[string]jobcall.Reference{"short": short, "broken": broken, "gone": gone} {
		form := exchange.NewForm()
		form.Field("prompt", "x")
		form.File("image", "1.png", r)
		_, err := line.Submit(t.Context(), exchange.JobCall{Method: http.MethodPost, URL: line.URL("x"), Form: form, Limit: 1})
		if m := upstream.AsJobFailure(err); m.Lost || m.Health != upstream.HealthNone || m.Next != upstream.NextLater {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestFormCut tests a provider that disconnects in the middle of a form: it may have accepted the
// task.
func TestFormCut(t *testing.T) {
	t.Parallel()
	line := formLine(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	var open atomic.Int64
	form := exchange.NewForm()
	form.File("image", "1.png", file(strings.Repeat("z", 1<<16), &open))
	_, err := line.Submit(t.Context(), exchange.JobCall{Method: http.MethodPost, URL: line.URL("x"), Form: form, Limit: 1})
	if m := upstream.AsJobFailure(err); !m.Lost || m.Health != upstream.HealthFail {
		t.Errorf("%+v", m)
	}
}
