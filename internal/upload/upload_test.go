package upload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"tollgate/internal/fault"
)

const contentType = "multipart/form-data; boundary=B"

// text and file return a part of a body.
func text(name, value string) string {
	return "--B\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
}

func file(name, filename, value string) string {
	return "--B\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"" + filename +
		"\"\r\nContent-Type: audio/mpeg\r\n\r\n" + value + "\r\n"
}

const end = "--B--\r\n"

// options limits files to 10 bytes, and those of model "big" to 20.
func options(t testing.TB) Options {
	return Options{FileField: "file", Folder: t.TempDir(), MaxFile: func(f *MultipartForm) (int64, error) {
		switch f.Value("model") {
		case "none":
			return 0, errors.New("no such model")
		case "small":
			return 10, nil
		}
		return 20, nil
	}}
}

// TestRead checks the fields and the file of a form, and that its temporary file has no name.
func TestRead(t *testing.T) {
	t.Parallel()
	o := options(t)
	body := text("model", "small") + text("list[]", "a") + file("file", `C:\music\a b.mp3`, "0123456789") + text("list[]", "b") + end
	form, err := Read(contentType, iotest.OneByteReader(strings.NewReader(body)), o)
	if err != nil {
		t.Fatal(err)
	}
	defer form.Close()
	if want := []TextField{{"model", "small"}, {"list[]", "a"}, {"list[]", "b"}}; !slices.Equal(form.Fields, want) {
		t.Errorf("got the fields %v, want %v", form.Fields, want)
	}
	if f := form.File; f.Name != "a b.mp3" || f.Type != "audio/mpeg" || f.Size != 10 {
		t.Errorf("got the file %q of type %q with %d bytes, want a b.mp3, audio/mpeg, 10", f.Name, f.Type, f.Size)
	}
	for range 2 {
		if got, err := io.ReadAll(form.File.Open()); string(got) != "0123456789" || err != nil {
			t.Errorf("the file reads as %q, %v, want 0123456789", got, err)
		}
	}
	if left, err := os.ReadDir(o.Folder); len(left) > 0 || err != nil {
		t.Errorf("got the files %v, %v, want none", left, err)
	}
}

// TestReadRefuses checks the errors for bad forms.
func TestReadRefuses(t *testing.T) {
	t.Parallel()
	good := text("model", "small") + file("file", "a.mp3", "0123456789")
	for _, c := range []struct {
		name, contentType, body string
		code                    fault.Code
		param                   string
	}{
		{"JSON", "application/json", "{}", fault.InvalidRequest, ""},
		{"no boundary", "multipart/form-data", good + end, fault.InvalidRequest, ""},
		{"nothing", contentType, "", fault.InvalidRequest, ""},
		{"cut off between two parts", contentType, good, fault.InvalidRequest, ""},
		{"cut off in the file", contentType, good[:len(good)-4], fault.InvalidRequest, ""},
		{"cut off in the end", contentType, good + "--B", fault.InvalidRequest, ""},
		{"no file", contentType, text("model", "small") + end, fault.InvalidRequest, "file"},
		{"an empty file", contentType, file("file", "a.mp3", "") + end, fault.InvalidRequest, "file"},
		{"a file as text", contentType, text("file", "0123") + end, fault.InvalidRequest, "file"},
		{"two files", contentType, good + file("file", "b.mp3", "1") + end, fault.InvalidRequest, "file"},
		{"another file", contentType, good + file("extra", "b.mp3", "1") + end, fault.InvalidRequest, "extra"},
		{"a field twice", contentType, text("model", "small") + good + end, fault.InvalidRequest, "model"},
		{"a field without a name", contentType, text("", "1") + good + end, fault.InvalidRequest, ""},
		{"a long name", contentType, text(strings.Repeat("n", maxName+1), "1") + good + end, fault.InvalidRequest, ""},
		{"a long text", contentType, text("prompt", strings.Repeat("x", maxText+1)) + good + end, fault.InvalidRequest, "prompt"},
		{"long texts", contentType, strings.Repeat(text("p[]", strings.Repeat("x", maxText)), 5) + good + end, fault.InvalidRequest, "p[]"},
		{"text in another encoding", contentType, text("prompt", "\xff") + good + end, fault.InvalidEncoding, "prompt"},
		{"many parts", contentType, strings.Repeat(text("p[]", "x"), maxParts) + good + end, fault.InvalidRequest, ""},
		{"a long head", contentType, "--B\r\nX: " + strings.Repeat("x", maxHead+8192) + "\r\n\r\n" + good + end, fault.InvalidRequest, ""},
		{"a large file", contentType, text("model", "small") + file("file", "a", "0123456789x") + end, fault.RequestTooLarge, "file"},
		{"a file larger than that of any model", contentType, file("file", "a", strings.Repeat("x", 21)), fault.RequestTooLarge, "file"},
		{"a file too large for a later model", contentType, file("file", "a", "0123456789x") + text("model", "small") + end,
			fault.RequestTooLarge, "file"},
		{"an unknown model", contentType, text("model", "none") + file("file", "a", "1") + end, fault.ServiceUnavailable, ""},
	} {
		form, err := Read(c.contentType, strings.NewReader(c.body), options(t))
		if form != nil {
			form.Close()
		}
		if f := fault.Of(err); err == nil || f.Code != c.code || f.Param != c.param {
			t.Errorf("%s: got %v, want %s at %q", c.name, err, c.code, c.param)
		}
	}
}

// TestReadStops checks that a file above the limit is not read to its end.
func TestReadStops(t *testing.T) {
	t.Parallel()
	body := strings.NewReader(text("model", "small") + file("file", "a", strings.Repeat("x", 1<<20)) + end)
	if _, err := Read(contentType, body, options(t)); fault.Of(err).Code != fault.RequestTooLarge {
		t.Errorf("got %v, want %s", err, fault.RequestTooLarge)
	}
	if body.Len() < 1<<19 {
		t.Errorf("%d bytes were left, want nearly all", body.Len())
	}
}

// TestReadReturnsTheBodysError checks that an error of the body is returned as it is.
func TestReadReturnsTheBodysError(t *testing.T) {
	t.Parallel()
	slow := errors.New("too slow")
	model, sound := text("model", "small"), file("file", "a", "0123")
	for _, start := range []string{"", model, model[:50], sound[:len(sound)-4]} {
		body := io.MultiReader(strings.NewReader(start), iotest.ErrReader(slow))
		if _, err := Read(contentType, body, options(t)); !errors.Is(err, slow) {
			t.Errorf("after %q: got %v, want the error of the body", start, err)
		}
	}
}

// TestReadWithoutRoom checks the error if the file cannot be stored.
func TestReadWithoutRoom(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Folder = filepath.Join(o.Folder, "missing")
	_, err := Read(contentType, strings.NewReader(file("file", "a", "1")+end), o)
	if f := fault.Of(err); f.Code != fault.ServiceUnavailable || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %s with its cause", err, fault.ServiceUnavailable)
	}
}

// FuzzRead checks that every body gives a form within the bounds or a fault.
func FuzzRead(f *testing.F) {
	f.Add([]byte(text("model", "small") + file("file", "a", "0123456789") + end))
	f.Add([]byte(text("a", "1") + text("a", "2") + "--B\r\n\r\n\r\n" + end))
	o := options(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		form, err := Read(contentType, bytes.NewReader(body), o)
		if err != nil {
			return
		}
		defer form.Close()
		if form.File == nil || form.File.Size < 1 || form.File.Size > 20 || len(form.Fields) > maxParts {
			t.Errorf("got the file %+v and %d fields, want a file of 1 to 20 bytes", form.File, len(form.Fields))
		}
	})
}
