package measure

import (
	"math"
	"reflect"
	"testing"

	"tollgate/internal/money"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		unit              Unit
		n                 int64
		field, value      string
		whole             int64
		noun, column      string
		ofOne, figuresOf0 int
	}{
		{Image, 1, "image_count", "1", 1, "image", "Images", 1, 0},
		{Image, 12, "image_count", "12", 12, "images", "Images", 1, 0},
		{VideoMS, 2500, "video_seconds", "2.5", 3, "seconds of video", "Seconds of video", 2, 1},
		{VideoMS, 1000, "video_seconds", "1", 1, "second of video", "Seconds of video", 2, 1},
		{"character", 3, "character_count", "3", 3, "characters", "Characters", 1, 0},
		{"audio_ms", 1, "audio_seconds", "0.001", 1, "second of audio", "Seconds of audio", 1, 0},
		{"search", 2, "search_count", "2", 2, "searches", "Searches", 1, 0},
		{"tile", 0, "tile_count", "0", 0, "tiles", "Tiles", 0, 0},
	} {
		u := test.unit
		whole := u.Whole(test.n)
		if u.Field() != test.field || u.Format(test.n) != test.value || whole != test.whole || u.Noun(whole) != test.noun ||
			u.Title() != test.column {
			t.Errorf("%s: %s, %s, %d, %s, %s", u, u.Field(), u.Format(test.n), whole, u.Noun(whole), u.Title())
		}
		if got := len(Quantity{u, test.n}.Values()); got != test.ofOne {
			t.Errorf("%d of %s: %d figures", test.n, u, got)
		}
		if got := len(Quantity{u, 0}.Values()); got != test.figuresOf0 {
			t.Errorf("0 of %s: %d figures", u, got)
		}
	}
	if got := (Quantity{}).Values(); len(got) != 0 {
		t.Errorf("figures without a unit: %v", got)
	}
}

func TestTotals(t *testing.T) {
	t.Parallel()
	a, b := Of(Image, 1, 3).Plus(Of("tile", 1, 5)), Of("tile", 2, 7)
	sum := a.Plus(b)
	if want := (Totals{Image: {1, 3}, "tile": {3, 12}}); !reflect.DeepEqual(sum, want) {
		t.Errorf("sum %v, want %v", sum, want)
	}
	if want := (Totals{Image: {1, 3}, "tile": {1, 5}}); !reflect.DeepEqual(a, want) {
		t.Errorf("the first total became %v", a)
	}
	if got := a.Plus(nil).Plus(Of("", 9, 9)); !reflect.DeepEqual(got, a) {
		t.Errorf("with nothing: %v", got)
	}
	full := Of(Image, 1, math.MaxInt64).Plus(Of(Image, math.MaxInt64, 1))[Image]
	if full.N != int64(money.Max) || full.Requests != int64(money.Max) {
		t.Errorf("a full sum is %v", full)
	}
	units := []Unit{Image, VideoMS, Character, AudioMS, Search, "arc", "tile"}
	if got, want := Of("tile", 1, 1).Plus(Of("arc", 1, 1)).Units(), units; !reflect.DeepEqual(got, want) {
		t.Errorf("units %v, want %v", got, want)
	}
	got := string(AppendJSON([]byte(`{"a":1}`), append(sum.Values(Image), Of(VideoMS, 2, 3500).Values(VideoMS)...)))
	if want := `{"a":1,"image_count":3,"clip_count":2,"video_seconds":3.5}`; got != want {
		t.Errorf("JSON %s, want %s", got, want)
	}
}
