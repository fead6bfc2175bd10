package upstream_test

import (
	"errors"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

func TestUnfit(t *testing.T) {
	t.Parallel()
	for kind, job := range map[string]fault.Code{upstream.KindImage: fault.UpstreamError, upstream.KindVideo: fault.InvalidMaterial} {
		tr := upstream.Unfit(kind, "Reference %d is too large.", 2)
		if tr.Job != job || tr.Next != upstream.NextLine || tr.Health != upstream.HealthNone || tr.Message != "Reference 2 is too large." {
			t.Errorf("%s: %+v", kind, tr)
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
