package catalog

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"tollgate/internal/fault"
	"tollgate/internal/money"
)

// easel returns an image model.
func easel(t testing.TB) *Model {
	return &mustParse(t,
		`models: [{id: easel, kind: image, price: {1K: 0.03, 2K: 0.05},`+
			` ratios: ["1:1", "16:9", "9:16"], max_images: 4, max_references: 4}]`).Models[0]
}

// reel returns a video model with a price per second.
func reel(t testing.TB) *Model {
	return &mustParse(t,
		`models: [{id: reel, kind: video, price: {720p: 0.05, 1080p: 0.09}, durations: [5, 10], ratios: ["16:9", "9:16"],`+
			` max_references: 2, params: [seed]}]`).Models[0]
}

// clip returns a video model with a price per clip, and without lists of durations and ratios.
func clip(t testing.TB) *Model {
	return &mustParse(t, `models: [{id: clip, kind: video, per_clip: {720p: 0.40}}]`).Models[0]
}

// checkFault checks the code and the param of an error.
func checkFault(t *testing.T, err error, code fault.Code, param string) {
	t.Helper()
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != code || e.Param != param || e.Message() == "" {
		t.Errorf("got error %v, want %s with param %s", err, code, param)
	}
}

// TestPlanImage checks the plans of image submissions, and the param and code of rejected
// submissions.
func TestPlanImage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		req  ImageRequest
		want Plan
	}{
		{"defaults", ImageRequest{}, Plan{Tier: "1K", Ratio: "1:1", Width: 1024, Height: 1024, Count: 1}},
		{"auto", ImageRequest{Size: "auto", Resolution: "auto", N: 1}, Plan{Tier: "1K", Ratio: "1:1", Width: 1024, Height: 1024, Count: 1}},
		{"edit without a ratio", ImageRequest{References: 1}, Plan{Tier: "1K", Count: 1}},
		{"a tier as size", ImageRequest{Size: "2K", N: 3}, Plan{Tier: "2K", Larger: true, Ratio: "1:1", Width: 2048, Height: 2048, Count: 3}},
		{"a tier in small letters", ImageRequest{Resolution: "2k"}, Plan{Tier: "2K", Larger: true, Ratio: "1:1", Width: 2048, Height: 2048,
			Count: 1}},
		{"same tier as size and resolution", ImageRequest{Size: "2K", Resolution: "2K"},
			Plan{Tier: "2K", Larger: true, Ratio: "1:1", Width: 2048, Height: 2048, Count: 1}},
		{"a ratio", ImageRequest{Size: "16:9"}, Plan{Tier: "1K", Ratio: "16:9", Width: 1360, Height: 768, Count: 1}},
		{"a ratio and a tier", ImageRequest{Size: "9:16", Resolution: "2K"}, Plan{Tier: "2K", Larger: true, Ratio: "9:16", Width: 1536,
			Height: 2736, Count: 1}},
		{"same ratio in other numbers", ImageRequest{Size: "1920:1080"}, Plan{Tier: "1K", Ratio: "16:9", Width: 1360, Height: 768, Count: 1}},
		{"pixels near a ratio", ImageRequest{Size: "1792x1024"}, Plan{Tier: "2K", Larger: true, Ratio: "16:9", Width: 1792, Height: 1024,
			Exact: true, Count: 1}},
		{"ratio", ImageRequest{Ratio: "16:9", Resolution: "2K"}, Plan{Tier: "2K", Larger: true, Ratio: "16:9", Width: 2736,
			Height: 1536, Count: 1}},
		{"ratio and a tier as size", ImageRequest{Ratio: "9:16", Size: "1K"},
			Plan{Tier: "1K", Ratio: "9:16", Width: 768, Height: 1360, Count: 1}},
		{"ratio and the same ratio as size", ImageRequest{Ratio: "1920:1080", Size: "16:9"},
			Plan{Tier: "1K", Ratio: "16:9", Width: 1360, Height: 768, Count: 1}},
		{"ratio and pixels of this ratio", ImageRequest{Ratio: "1:1", Size: "512x512"},
			Plan{Tier: "1K", Ratio: "1:1", Width: 512, Height: 512, Exact: true, Count: 1}},
		{"auto ratio and a ratio as size", ImageRequest{Ratio: "auto", Size: "16:9"},
			Plan{Tier: "1K", Ratio: "16:9", Width: 1360, Height: 768, Count: 1}},
		{"edit with a ratio", ImageRequest{Ratio: "16:9", References: 1}, Plan{Tier: "1K", Ratio: "16:9", Width: 1360, Height: 768, Count: 1}},
		{"pixels", ImageRequest{Size: "1024x1024"}, Plan{Tier: "1K", Ratio: "1:1", Width: 1024, Height: 1024, Exact: true, Count: 1}},
		{"pixels with a capital", ImageRequest{Size: "512X512"}, Plan{Tier: "1K", Ratio: "1:1", Width: 512, Height: 512, Exact: true, Count: 1}},
		{"largest pixels of a tier", ImageRequest{Size: "1254x1254"}, Plan{Tier: "1K", Ratio: "1:1", Width: 1254, Height: 1254, Exact: true,
			Count: 1}},
		{"smallest pixels of the next tier", ImageRequest{Size: "1255x1255"},
			Plan{Tier: "2K", Larger: true, Ratio: "1:1", Width: 1255, Height: 1255, Exact: true, Count: 1}},
		{"pixels and their tier as resolution", ImageRequest{Size: "2048x2048", Resolution: "2K", References: 4},
			Plan{Tier: "2K", Larger: true, Ratio: "1:1", Width: 2048, Height: 2048, Exact: true, Count: 1}},
		{"edit at a larger tier", ImageRequest{Resolution: "2K", References: 1}, Plan{Tier: "2K", Larger: true, Count: 1}},
		{"maximum number of images and references", ImageRequest{N: 4, References: 4}, Plan{Tier: "1K", Count: 4}},
	} {
		got, err := easel(t).PlanImage(tt.req)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name  string
		req   ImageRequest
		code  fault.Code
		param string
	}{
		{"too many images", ImageRequest{N: 5}, fault.InvalidRequest, "n"},
		{"negative number", ImageRequest{N: -1}, fault.InvalidRequest, "n"},
		{"a tier that is not offered", ImageRequest{Resolution: "4K"}, fault.UnsupportedResolution, "resolution"},
		{"tier of video models", ImageRequest{Resolution: "720p"}, fault.UnsupportedResolution, "resolution"},
		{"invalid tier", ImageRequest{Resolution: "huge"}, fault.UnsupportedResolution, "resolution"},
		{"a size that is not offered", ImageRequest{Size: "4K"}, fault.UnsupportedResolution, "size"},
		{"pixels above the largest tier", ImageRequest{Size: "3000x3000"}, fault.UnsupportedResolution, "size"},
		{"very many pixels", ImageRequest{Size: "99999999999999999999x99999999999999999999"}, fault.UnsupportedResolution, "size"},
		{"a ratio that is not offered", ImageRequest{Size: "4:3"}, fault.InvalidRequest, "size"},
		{"pixels of a ratio that is not offered", ImageRequest{Size: "1024x768"}, fault.InvalidRequest, "size"},
		{"pixels three percent off a ratio", ImageRequest{Size: "1055x1024"}, fault.InvalidRequest, "size"},
		{"invalid size", ImageRequest{Size: "large"}, fault.InvalidRequest, "size"},
		{"missing width", ImageRequest{Size: "x1024"}, fault.InvalidRequest, "size"},
		{"zero width", ImageRequest{Size: "0x1024"}, fault.InvalidRequest, "size"},
		{"negative pixels", ImageRequest{Size: "-1x-1"}, fault.InvalidRequest, "size"},
		{"zero ratio", ImageRequest{Size: "0:0"}, fault.InvalidRequest, "size"},
		{"different tiers as size and resolution", ImageRequest{Size: "1K", Resolution: "2K"}, fault.InvalidRequest, "size"},
		{"pixels of another tier", ImageRequest{Size: "512x512", Resolution: "2K"}, fault.InvalidRequest, "size"},
		{"different ratios as size and ratio", ImageRequest{Size: "1:1", Ratio: "16:9"}, fault.InvalidRequest, "ratio"},
		{"pixels of another ratio", ImageRequest{Size: "512x512", Ratio: "16:9", RatioParam: "aspect_ratio"}, fault.InvalidRequest,
			"aspect_ratio"},
		{"a ratio field that is not offered", ImageRequest{Ratio: "4:3"}, fault.InvalidRequest, "ratio"},
		{"invalid ratio", ImageRequest{Ratio: "wide", RatioParam: "aspect_ratio"}, fault.InvalidRequest, "aspect_ratio"},
		{"too many references", ImageRequest{References: 5}, fault.InvalidRequest, "image"},
		{"too many references in another field", ImageRequest{References: 5, ReferencesParam: "images"}, fault.InvalidRequest, "images"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := easel(t).PlanImage(tt.req)
			checkFault(t, err, tt.code, tt.param)
		})
	}
}

// TestPlanImageWithoutRatios checks that a model without a list of ratios accepts any ratio up to
// maxRatio.
func TestPlanImageWithoutRatios(t *testing.T) {
	t.Parallel()
	m := &mustParse(t, `models: [{id: free, kind: image, price: {1K: 0, 720p: 0}, free_daily_requests: 5}]`).Models[0]
	for size, want := range map[string]Plan{
		"":          {Tier: "1K", Larger: true, Count: 1},
		"1024x768":  {Tier: "1K", Larger: true, Ratio: "4:3", Width: 1024, Height: 768, Exact: true, Count: 1},
		"1280x720":  {Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720, Exact: true, Count: 1},
		"2560x720":  {Tier: "720p", Ratio: "32:9", Width: 2560, Height: 720, Exact: true, Count: 1},
		"640x640":   {Tier: "720p", Ratio: "1:1", Width: 640, Height: 640, Exact: true, Count: 1},
		"1000x1000": {Tier: "1K", Larger: true, Ratio: "1:1", Width: 1000, Height: 1000, Exact: true, Count: 1},
	} {
		got, err := m.PlanImage(ImageRequest{Size: size})
		if err != nil || got != want {
			t.Errorf("size %q: got %+v, %v, want %+v", size, got, err, want)
		}
		if cost := m.PlanCost(got, got.Count); cost != 0 {
			t.Errorf("size %q costs %s, want 0", size, cost)
		}
	}
	_, err := m.PlanImage(ImageRequest{Size: "5000x100"})
	checkFault(t, err, fault.InvalidRequest, "size")
	_, err = m.PlanImage(ImageRequest{N: 2})
	checkFault(t, err, fault.InvalidRequest, "n")
	_, err = m.PlanImage(ImageRequest{References: 1})
	checkFault(t, err, fault.InvalidRequest, "image")
}

// TestPlanVideo checks the plans of video submissions, and the param of rejected submissions.
func TestPlanVideo(t *testing.T) {
	t.Parallel()
	span := &mustParse(t, `models: [{id: span, kind: video, price: {480p: 0.01}, durations: {min: 4, max: 12}}]`).Models[0]
	for _, tt := range []struct {
		name  string
		model *Model
		req   VideoRequest
		want  Plan
	}{
		{"defaults", reel(t), VideoRequest{}, Plan{Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720, Seconds: 5, Count: 1}},
		{"from an image", reel(t), VideoRequest{References: 1}, Plan{Tier: "720p", Seconds: 5, Count: 1}},
		{"all fields", reel(t), VideoRequest{Resolution: "1080P", Ratio: "9:16", Duration: "10", References: 2},
			Plan{Tier: "1080p", Larger: true, Ratio: "9:16", Width: 1080, Height: 1920, Seconds: 10, Count: 1}},
		{"auto", reel(t), VideoRequest{Resolution: "auto", Ratio: "auto"}, Plan{Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720, Seconds: 5,
			Count: 1}},
		{"whole number with an exponent", reel(t), VideoRequest{Duration: "1.0e1"},
			Plan{Tier: "720p", Ratio: "16:9", Width: 1280, Height: 720, Seconds: 10, Count: 1}},
		{"shortest of a range by default", span, VideoRequest{}, Plan{Tier: "480p", Seconds: 4, Count: 1}},
		{"longest of a range", span, VideoRequest{Duration: "12", Ratio: "16:9"},
			Plan{Tier: "480p", Ratio: "16:9", Width: 854, Height: 480, Seconds: 12, Count: 1}},
		{"price per clip", clip(t), VideoRequest{}, Plan{Tier: "720p", Count: 1}},
	} {
		got, err := tt.model.PlanVideo(tt.req)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		name  string
		model *Model
		req   VideoRequest
		param string
	}{
		{"a tier that is not offered", reel(t), VideoRequest{Resolution: "4K"}, "resolution"},
		{"a ratio that is not offered", reel(t), VideoRequest{Ratio: "1:1"}, "ratio"},
		{"invalid aspect_ratio", reel(t), VideoRequest{Ratio: "wide", RatioParam: "aspect_ratio"}, "aspect_ratio"},
		{"a length that is not offered", reel(t), VideoRequest{Duration: "7"}, "duration"},
		{"half a second", reel(t), VideoRequest{Duration: "5.5"}, "duration"},
		{"too short", span, VideoRequest{Duration: "3"}, "duration"},
		{"too long", span, VideoRequest{Duration: "13"}, "duration"},
		{"fraction of a second in a range", span, VideoRequest{Duration: "4.5"}, "duration"},
		{"huge exponent", span, VideoRequest{Duration: "1e999999999"}, "duration"},
		{"negative duration", span, VideoRequest{Duration: "-5"}, "duration"},
		{"duration for a model without durations", clip(t), VideoRequest{Duration: "5"}, "duration"},
		{"too many references", reel(t), VideoRequest{References: 3, ReferencesParam: "references"}, "references"},
		{"references for a model without references", clip(t), VideoRequest{References: 1}, "image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.model.PlanVideo(tt.req)
			checkFault(t, err, fault.InvalidRequest, tt.param)
		})
	}
}

func TestPlanCost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		model     *Model
		plan      Plan
		delivered int64
		want      string
	}{
		{"an image", easel(t), Plan{Tier: "1K", Count: 1}, 1, "0.03"},
		{"four images of the larger tier", easel(t), Plan{Tier: "2K", Count: 4}, 4, "0.2"},
		{"fewer than requested", easel(t), Plan{Tier: "2K", Count: 4}, 3, "0.15"},
		{"more than requested", easel(t), Plan{Tier: "2K", Count: 2}, 3, "0.1"},
		{"none", easel(t), Plan{Tier: "2K", Count: 2}, 0, "0"},
		{"negative pixels", easel(t), Plan{Tier: "2K", Count: 2}, -1, "0"},
		{"a clip by the second", reel(t), Plan{Tier: "1080p", Seconds: 10, Count: 1}, 1, "0.9"},
		{"no clip", reel(t), Plan{Tier: "1080p", Seconds: 10, Count: 1}, 0, "0"},
		{"a clip as a whole", clip(t), Plan{Tier: "720p", Seconds: 30, Count: 1}, 1, "0.4"},
	} {
		if got := tt.model.PlanCost(tt.plan, tt.delivered); got.String() != tt.want {
			t.Errorf("%s: got %s USD, want %s", tt.name, got, tt.want)
		}
	}
	if got := easel(t).PlanCost(Plan{Tier: "8K", Count: 1}, 1); got != math.MaxInt64 {
		t.Errorf("PlanCost for a tier without a price = %s, want the maximum", got)
	}
}

// TestPlanCostIsExactAndWithinTheHold checks that the cost of a plan equals the cost in exact
// arithmetic, is never negative, grows with the delivery, and is never above the hold.
func TestPlanCostIsExactAndWithinTheHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMedia(t)
		p := Plan{
			Tier:    rapid.SampledFrom(m.Tiers).Draw(t, "tier").Name,
			Seconds: rapid.Int64Range(0, maxSeconds).Draw(t, "seconds"),
			Count:   1,
			Factor:  drawFactor(t),
		}
		if m.Kind == KindImage {
			p.Count = rapid.Int64Range(1, maxPieces).Draw(t, "count")
		}
		hold := m.PlanHold(p)
		if full := m.PlanCost(p, p.Count); hold < full || hold-full > 1 {
			t.Fatalf("hold %s, want the full cost %s, or a nano-dollar more", hold, full)
		}
		previous := money.Amount(0)
		for delivered := int64(-1); delivered <= p.Count+2; delivered++ {
			units := max(0, min(delivered, p.Count))
			if m.Kind == KindVideo && !m.PerClip {
				units *= p.Seconds
			}
			tier, _ := m.tier(p.Tier)
			want := new(big.Int).Mul(big.NewInt(units), big.NewInt(int64(tier.Price)))
			if p.Factor != 0 {
				want.Mul(want, big.NewInt(int64(p.Factor))).Add(want, big.NewInt(500_000)).Quo(want, big.NewInt(1_000_000))
			}
			if !want.IsInt64() {
				want.SetInt64(math.MaxInt64) // not covered by any balance
			}
			got := m.PlanCost(p, delivered)
			if want.Cmp(big.NewInt(int64(got))) != 0 {
				t.Fatalf("%d delivered cost %d nano, want %s", delivered, int64(got), want)
			}
			if got < previous || got > hold {
				t.Fatalf("%d delivered cost %s, want from %s for one fewer to the hold %s", delivered, got, previous, hold)
			}
			previous = got
		}
	})
}

// TestPlansMatchModel checks that any submission becomes a plan that the model offers, or a 400
// with a param, and that a picture's pixels match its tier and ratio.
func TestPlansMatchModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawMedia(t)
		text := rapid.OneOf(
			rapid.SampledFrom([]string{"", "auto", "1K", "2k", "720p", "9K", "16:9", "1:1", "21:9", "x", ":", "1024x1024", "huge"}),
			rapid.StringMatching(`[0-9]{0,7}[x:X][0-9]{0,7}`), rapid.String())
		var p Plan
		var err error
		if m.Kind == KindImage {
			p, err = m.PlanImage(ImageRequest{Size: text.Draw(t, "size"), Resolution: text.Draw(t, "resolution"),
				N: rapid.Int64Range(-1, 9).Draw(t, "n"), References: rapid.IntRange(0, 6).Draw(t, "references")})
		} else {
			p, err = m.PlanVideo(VideoRequest{Resolution: text.Draw(t, "resolution"), Ratio: text.Draw(t, "ratio"),
				Duration:   rapid.SampledFrom([]string{"", "5", "10", "7.5", "1e1", "12", "0"}).Draw(t, "duration"),
				References: rapid.IntRange(0, 6).Draw(t, "references")})
		}
		if err != nil {
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Status() != 400 || e.Param == "" {
				t.Fatalf("got error %v, want a 400 with a param", err)
			}
			return
		}
		tier, ok := m.tier(p.Tier)
		if !ok || tier.Name != p.Tier || p.Count < 1 || (m.Kind == KindImage && p.Count > m.MaxImages) {
			t.Fatalf("got plan %+v, want one that the model offers", p)
		}
		if (p.Ratio == "") != (p.Width == 0) || (p.Width == 0) != (p.Height == 0) || p.Width < 0 || p.Height < 0 {
			t.Fatalf("got plan %+v, want both a ratio and pixels, or neither", p)
		}
		if m.PlanCost(p, p.Count) == math.MaxInt64 {
			t.Fatalf("got plan %+v, want one with a price", p)
		}
		if tier, ok := m.tierFor(int64(p.Width), int64(p.Height)); p.Exact && (!ok || tier != p.Tier) {
			t.Fatalf("got plan %+v, want the tier of its pixels, %s", p, tier)
		}
	})
}

// drawMedia returns an image or video model with any prices valid in a catalog.
func drawMedia(t *rapid.T) *Model {
	m := &Model{ID: "m", Kind: rapid.SampledFrom([]Kind{KindImage, KindVideo}).Draw(t, "kind"),
		MaxImages: rapid.Int64Range(1, 8).Draw(t, "max images"), MaxReferences: rapid.Int64Range(0, 5).Draw(t, "max references")}
	names := []string{"1K", "2K", "4K", "480p", "720p", "1080p"}
	for _, name := range names[:rapid.IntRange(1, len(names)).Draw(t, "tiers")] {
		m.Tiers = append(m.Tiers, Tier{name, money.Price(rapid.Int64Range(0, int64(money.MaxPrice)).Draw(t, "price"))})
	}
	if rapid.Bool().Draw(t, "has ratios") {
		m.Ratios = []string{"16:9", "1:1", "9:16", "99999:1"}[:rapid.IntRange(1, 4).Draw(t, "ratios")]
	}
	if m.Kind == KindVideo {
		m.PerClip = rapid.Bool().Draw(t, "per clip")
		if rapid.Bool().Draw(t, "list") {
			m.Durations.List = []int64{5, 10}
		} else if !m.PerClip {
			m.Durations.Min, m.Durations.Max = 4, 12
		}
	}
	return m
}
