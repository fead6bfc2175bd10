package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

func TestReferenceBytes(t *testing.T) {
	t.Parallel()
	open := func(data string, err error) func(context.Context) (io.ReadCloser, error) {
		return func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader([]byte(data))), err
		}
	}
	for name, tt := range map[string]struct {
		r    upstream.Reference
		want string
		ok   bool
	}{
		"whole":   {upstream.Reference{Size: 3, Open: open("abc", nil)}, "abc", true},
		"empty":   {upstream.Reference{Open: open("", nil)}, "", true},
		"short":   {upstream.Reference{Size: 4, Open: open("abc", nil)}, "", false},
		"unknown": {upstream.Reference{Size: -1, Open: open("abc", nil)}, "", false},
		"gone":    {upstream.Reference{Size: 3, Open: open("", errors.New("gone"))}, "", false},
	} {
		data, err := tt.r.Bytes(t.Context())
		if string(data) != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	m := upstream.Unread(errors.New("disk"))
	if m.Job != fault.UpstreamError || m.Next != upstream.NextLater || m.Health != upstream.HealthNone || m.Lost {
		t.Errorf("%+v", m)
	}
}

func TestAsJobFailure(t *testing.T) {
	t.Parallel()
	m := upstream.Unread(errors.New("disk"))
	if upstream.AsJobFailure(m) != m {
		t.Error("another failure")
	}
	if m := upstream.AsJobFailure(errors.New("odd")); m.Failure == nil || m.Next != upstream.NextLine {
		t.Errorf("%+v", m)
	}
}
