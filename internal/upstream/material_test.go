package upstream

import (
	"errors"
	"testing"

	"tollgate/internal/fault"
)

func TestImage(t *testing.T) {
	t.Parallel()
	if !(Reference{Type: "image/png"}).Image() || (Reference{Type: "video/mp4"}).Image() {
		t.Error("an image is told by its type")
	}
}

func TestUnfit(t *testing.T) {
	t.Parallel()
	for kind, job := range map[string]fault.Code{KindImage: fault.UpstreamError, KindVideo: fault.InvalidMaterial} {
		tr := Unfit(kind, "Reference %d is too large.", 2)
		if tr.Job != job || tr.Next != NextLine || tr.Health != HealthNone || tr.Message != "Reference 2 is too large." {
			t.Errorf("%s: %+v", kind, tr)
		}
	}
}

func TestFitPictures(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	of := func(kind, url string, size int64) Reference { return Reference{Type: kind, URL: url, Size: size} }
	for name, tt := range map[string]struct {
		refs []Reference
		fits bool
	}{
		"none":          {nil, true},
		"as much":       {[]Reference{of("image/png", "", 3*mb), of("image/png", "", 3*mb)}, true},
		"one too large": {[]Reference{of("image/png", "https://x.example", 4*mb+1)}, false},
		"too much":      {[]Reference{of("image/png", "", 3*mb), of("image/png", "", 3*mb+1)}, false},
		"addresses": {[]Reference{of("image/png", "https://x.example", 4*mb), of("image/png", "https://x.example", 4*mb),
			of("image/png", "", 4*mb)}, true},
		"videos are not": {[]Reference{of("video/mp4", "", 90*mb)}, true},
	} {
		err := Task{Kind: KindVideo, References: tt.refs}.FitPictures(4*mb, 8*mb)
		var tr *JobFailure
		if tt.fits && err != nil || !tt.fits && (!errors.As(err, &tr) || tr.Job != fault.InvalidMaterial) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
