package jobcall

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

func TestImage(t *testing.T) {
	t.Parallel()
	if !(Reference{Type: "image/png"}).Image() || (Reference{Type: "video/mp4"}).Image() {
		t.Error("Image reports the wrong kind")
	}
}

// TestCheckPictureSizes tests the limits for one image and for all inline images. Videos have no limit.
func TestCheckPictureSizes(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	of := func(kind, url string, size int64) Reference { return Reference{Type: kind, URL: url, Size: size} }
	for name, tt := range map[string]struct {
		refs []Reference
		fits bool
	}{
		"none":          {nil, true},
		"at the limit":  {[]Reference{of("image/png", "", 3*mb), of("image/png", "", 3*mb)}, true},
		"one too large": {[]Reference{of("image/png", "https://x.example", 4*mb+1)}, false},
		"too much":      {[]Reference{of("image/png", "", 3*mb), of("image/png", "", 3*mb+1)}, false},
		"addresses": {[]Reference{of("image/png", "https://x.example", 4*mb), of("image/png", "https://x.example", 4*mb),
			of("image/png", "", 4*mb)}, true},
		"a large video": {[]Reference{of("video/mp4", "", 90*mb)}, true},
	} {
		err := Task{Kind: upstream.KindVideo, References: tt.refs}.CheckPictureSizes(4*mb, 8*mb)
		var tr *upstream.JobFailure
		if tt.fits && err != nil || !tt.fits && (!errors.As(err, &tr) || tr.Job != fault.InvalidMaterial) {
			t.Errorf("%s: CheckPictureSizes = %v, want accepted %t", name, err, tt.fits)
		}
	}
}

// TestReferenceBytes tests that Bytes returns the whole reference, or an error.
func TestReferenceBytes(t *testing.T) {
	t.Parallel()
	open := func(data string, err error) func(context.Context) (io.ReadCloser, error) {
		return func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte(data))), err
		}
	}
	for name, tt := range map[string]struct {
		r    Reference
		want string
		ok   bool
	}{
		"whole":   {Reference{Size: 3, Open: open("abc", nil)}, "abc", true},
		"empty":   {Reference{Open: open("", nil)}, "", true},
		"short":   {Reference{Size: 4, Open: open("abc", nil)}, "", false},
		"unknown": {Reference{Size: -1, Open: open("abc", nil)}, "", false},
		"gone":    {Reference{Size: 3, Open: open("", errors.New("gone"))}, "", false},
	} {
		data, err := tt.r.Bytes(t.Context())
		if string(data) != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: Bytes = %q, %v, want %q, success %t", name, data, err, tt.want, tt.ok)
		}
	}
}
