package drawing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// reference is one that can be read.
func reference(contentType string, data []byte) jobcall.Reference {
	return jobcall.Reference{Type: contentType, Size: int64(len(data)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}}
}

func imageWork() jobcall.Task {
	return jobcall.Task{Kind: upstream.KindImage, Model: "sandbox-image", Prompt: "A lighthouse in the fog", Count: 2, Tier: "1K",
		Ratio: "1:1", Width: 1024, Height: 1024}
}

func videoWork() jobcall.Task {
	return jobcall.Task{Kind: upstream.KindVideo, Model: "sandbox-video", Prompt: "A paper boat", Count: 1, Tier: "720p", Ratio: "16:9",
		Width: 1280, Height: 720, Seconds: 5}
}

// drawn draws an image and decodes it.
func drawn(t *testing.T, w jobcall.Task, index int) *image.Paletted {
	t.Helper()
	data, err := Picture(t.Context(), w, index)
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img.(*image.Paletted)
}

func TestPictureSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		work func(w *jobcall.Task)
		want image.Point
	}{
		{"as given", func(w *jobcall.Task) { w.Width, w.Height, w.Exact = 1344, 768, true }, image.Pt(1344, 768)},
		{"tiny", func(w *jobcall.Task) { w.Width, w.Height = 1, 1 }, image.Pt(1, 1)},
		{"the largest", func(w *jobcall.Task) { w.Width, w.Height = 3072, 2048 }, image.Pt(3072, 2048)},
		{"too many pixels", func(w *jobcall.Task) { w.Width, w.Height = 8192, 4096 }, image.Pt(3547, 1773)},
		{"too long", func(w *jobcall.Task) { w.Width, w.Height = 32768, 16 }, image.Pt(8192, 4)},
		{"by tier and ratio", func(w *jobcall.Task) { w.Width, w.Height, w.Ratio = 0, 0, "4:1" }, image.Pt(2048, 512)},
		{"by tier alone", func(w *jobcall.Task) { w.Width, w.Height, w.Ratio = 0, 0, "" }, image.Pt(1024, 1024)},
		{"by a tier of rows", func(w *jobcall.Task) { w.Width, w.Height, w.Ratio, w.Tier = 0, 0, "9:16", "720p" }, image.Pt(720, 1280)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := imageWork()
			c.work(&w)
			if got := drawn(t, w, 0).Rect.Size(); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestPictures: what belongs to the work changes the picture, and nothing else
// does.
func TestPictures(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	add := func(name string, w jobcall.Task, index int) {
		w.Width, w.Height = 240, 240
		sum := string(drawn(t, w, index).Pix)
		if other, ok := seen[sum]; ok {
			t.Errorf("%s looks like %s", name, other)
		}
		seen[sum] = name
		w.Key = "another"
		if again := string(drawn(t, w, index).Pix); again != sum {
			t.Errorf("%s looks different the second time", name)
		}
	}
	w := imageWork()
	add("the first", w, 0)
	add("the second", w, 1)
	w.Params = []byte(`{"seed":7}`)
	add("a seed", w, 0)
	w = imageWork()
	w.Prompt = "A lighthouse in the fog."
	add("another prompt", w, 0)
	w = imageWork()
	w.References = []jobcall.Reference{reference("image/png", fakestudio.Picture(1))}
	add("a reference", w, 0)
	w.References[0] = reference("image/png", fakestudio.Picture(2))
	add("another reference", w, 0)
	w.Mask = &w.References[0]
	add("a mask", w, 0)
}

// TestPromptCanBeRead finds the prompt's letters on the picture, dot by dot.
func TestPromptCanBeRead(t *testing.T) {
	t.Parallel()
	w := imageWork()
	img := drawn(t, w, 0)
	dot := 1024 / 150
	margin := 1024 / 24
	white, missed := 0, 0
	said := fit(w.Prompt, 1024-4*margin, 512, dot)
	if said.dot != dot || len(said.rows) != 2 {
		t.Fatalf("%d rows of dots of %d", len(said.rows), said.dot)
	}
	said.draw(2*margin, 2*margin, func(x, y int, alpha uint8) {
		if alpha == 255 {
			white++
			if r, g, b, _ := img.At(x, y).RGBA(); r < 0xFFFF || g < 0xFFFF || b < 0xFFFF {
				missed++
			}
		}
	})
	if white < 1000 || missed > 0 {
		t.Errorf("%d of %d dots are not white", missed, white)
	}
}

func TestLettering(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text             string
		width, height, largest int
		want                   string // rows, after the size of a dot
	}{
		{"one row", "a cat", 40, 17, 1, "1 a cat"},
		{"larger dots", "a cat", 100, 40, 9, "2 a cat"},
		{"words wrap", "a cat sat", 40, 34, 1, "1 a cat|sat"},
		{"a long word breaks", "incomprehensible", 40, 68, 1, "1 incom|prehe|nsibl|e"},
		{"lines stay", "a\n\nb\n", 40, 68, 1, "1 a||b"},
		{"too much", "a cat sat on a mat", 40, 34, 5, "1 a cat|sat…"},
		{"too much, a full row", "abcdefghij klm", 40, 34, 5, "1 abcde|fghi…"},
		{"what is not seen", "a\u200db\u0301\x07c", 80, 17, 1, "1 abc"},
		{"dashes and wide letters", "a–Ｂ", 80, 17, 1, "1 a-B"},
		{"double cells", "🚀🚀🚀", 40, 34, 1, "1 🚀🚀|🚀"},
		{"no UTF-8", "a\xff", 40, 17, 1, "1 a\ufffd"},
		{"no room", "a", 7, 17, 3, "1 "},
		{"nothing", "", 40, 17, 3, "1 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := fit(c.text, c.width, c.height, c.largest)
			var rows []string
			for _, row := range l.rows {
				rows = append(rows, string(row))
			}
			if got := fmt.Sprintf("%d %s", l.dot, strings.Join(rows, "|")); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			l.draw(0, 0, func(x, y int, _ uint8) {
				if x < 0 || y < 0 || x >= c.width || y >= c.height {
					t.Fatalf("a dot at %d,%d of %dx%d", x, y, c.width, c.height)
				}
			})
		})
	}
}

// TestGlyphs: every character has a shape of its own, also those that the font
// lacks.
func TestGlyphs(t *testing.T) {
	t.Parallel()
	seen := map[string]rune{}
	for _, r := range "AaBbZz019.,!?äéßŁ€日本語и\u05d0🚀🚁\ufffd" {
		var shape strings.Builder
		glyph(r, func(x, y int, alpha uint8) {
			if x < 0 || x >= letterWidth*cells(r) || y < 0 || y >= letterHeight {
				t.Errorf("%c: a dot at %d,%d", r, x, y)
			}
			fmt.Fprint(&shape, x, y, alpha, " ")
		})
		if other, ok := seen[shape.String()]; ok || shape.Len() == 0 {
			t.Errorf("%c looks like %c", r, other)
		}
		seen[shape.String()] = r
	}
}

func TestThumbnails(t *testing.T) {
	t.Parallel()
	large := new(bytes.Buffer)
	if err := png.Encode(large, image.NewPaletted(image.Rect(0, 0, 4096, 1025), color.Palette{color.Black})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		ref  jobcall.Reference
		want image.Point
		card bool
	}{
		{"a picture", reference("image/png", fakestudio.Picture(1)), image.Pt(100, 75), false},
		{"too many pixels", reference("image/png", large.Bytes()), image.Pt(100, 100), true},
		{"too long", jobcall.Reference{Type: "image/png", Size: maxReferenceBytes + 1}, image.Pt(100, 100), true},
		{"longer than it says", reference("image/png", append(fakestudio.Picture(1), make([]byte, maxReferenceBytes)...)),
			image.Pt(100, 100), true},
		{"no picture", reference("image/jpeg", []byte("no picture")), image.Pt(100, 100), true},
		{"a video", reference("video/mp4", fakestudio.Clip()), image.Pt(100, 100), true},
		{"extended WebP", reference("image/webp", []byte("RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")),
			image.Pt(100, 100), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			img, err := thumbnail(t.Context(), c.ref, 100)
			if err != nil {
				t.Fatal(err)
			}
			if got := img.Rect.Size(); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if isCard := img.RGBAAt(0, 0) == (color.RGBA{51, 51, 51, 255}); isCard != c.card {
				t.Errorf("a card: %v", isCard)
			}
		})
	}
	broken := errors.New("broken")
	for name, ref := range map[string]jobcall.Reference{
		"not there": {Type: "image/png", Open: func(context.Context) (io.ReadCloser, error) { return nil, broken }},
		"cut": {Type: "image/png", Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(iotest.ErrReader(broken)), nil
		}},
	} {
		w := imageWork()
		w.References = []jobcall.Reference{ref}
		if _, err := Picture(t.Context(), w, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestGolden: drawings are the same on every machine and with every version of
// the language. The hash of a picture is that of its pixels, since how they are
// packed is not ours.
func TestGolden(t *testing.T) {
	t.Parallel()
	film, err := Clip(t.Context(), videoWork())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"picture": {drawn(t, imageWork(), 0).Pix, "e0e12e0b6388fad85df62efc7aaaa9d315991b96a6b70df197549748cd010ce8"},
		"clip":    {film, "fa5728dc157ef8d268a577b7cdf40773d9f612e560962dd250f092d964fe5bad"},
	} {
		sum := sha256.Sum256(c.data)
		if got := hex.EncodeToString(sum[:]); got != c.want {
			t.Errorf("%s: %s, want %s; if it was meant to change, look at it first", name, got, c.want)
		}
	}
}

// TestClip plays clips of several shapes.
func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		work          func(w *jobcall.Task)
		width, height int
		seconds       int
	}{
		{"720p", func(*jobcall.Task) {}, 1280, 720, 5},
		{"1080p, upright", func(w *jobcall.Task) { w.Tier, w.Width, w.Height, w.Seconds = "1080p", 1080, 1920, 2 }, 1080, 1920, 2},
		{"by tier and ratio", func(w *jobcall.Task) { w.Width, w.Height, w.Ratio, w.Seconds = 0, 0, "1:1", 1 }, 720, 720, 1},
		{"nothing is said", func(w *jobcall.Task) { w.Width, w.Height, w.Ratio, w.Seconds = 0, 0, "", 0 }, 1280, 720, 5},
		{"odd", func(w *jobcall.Task) { w.Width, w.Height, w.Seconds = 333, 251, 1 }, 332, 250, 1},
		{"huge", func(w *jobcall.Task) { w.Width, w.Height, w.Seconds = 7680, 4320, 1 }, 2560, 1440, 1},
		{"tiny", func(w *jobcall.Task) { w.Width, w.Height, w.Seconds = 16, 16, 1 }, 64, 64, 1},
		{"a strip", func(w *jobcall.Task) { w.Width, w.Height, w.Seconds = 2000, 20, 1 }, 2000, 64, 1},
		{"references", func(w *jobcall.Task) {
			w.Seconds = 1
			w.References = []jobcall.Reference{reference("image/png", fakestudio.Picture(1)), reference("video/mp4", fakestudio.Clip())}
		}, 1280, 720, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := videoWork()
			c.work(&w)
			file, err := Clip(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			still, seconds := 0, 0
			before := ""
			p, err := play(file, func(n int, p *player) {
				if now := string(p.picture.at); n > 0 && now == before {
					still++
				} else {
					before = now
				}
				if seconds = n / clipRate; p.macroblocksRead == 0 {
					t.Errorf("picture %d has no content", n)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if p.width != c.width || p.height != c.height || int(p.length) != 1000*c.seconds || len(p.sizes) != c.seconds*clipRate ||
				seconds+1 != c.seconds {
				t.Errorf("%dx%d, %d ms, %d pictures", p.width, p.height, p.length, len(p.sizes))
			}
			if p.scale/p.delta != clipRate || len(p.keys) != (c.seconds*clipRate+keyEvery-1)/keyEvery {
				t.Errorf("%d/%d pictures a second, key pictures %v", p.scale, p.delta, p.keys)
			}
			if still > 0 && c.name != "tiny" {
				t.Errorf("nothing moves in %d pictures", still)
			}
			if most := 150_000 * c.seconds; len(file) > most {
				t.Errorf("%d bytes, at most %d", len(file), most)
			}
		})
	}
}

func TestClipEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Clip(ctx, videoWork()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// FuzzReference: whatever a reference holds, a thumbnail comes out.
func FuzzReference(f *testing.F) {
	f.Add("image/png", fakestudio.Picture(1))
	f.Add("image/gif", []byte(
		"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"))
	f.Add("image/jpeg", []byte("\xff\xd8\xff\xe0"))
	f.Add("image/webp", []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"))
	f.Fuzz(func(t *testing.T, contentType string, data []byte) {
		img, err := thumbnail(t.Context(), reference(contentType, data), 40)
		if err != nil || img.Rect.Empty() || img.Rect.Dx() > 40 || img.Rect.Dy() > 40 {
			t.Errorf("%v, %v", img, err)
		}
	})
}

// FuzzLettering: whatever a prompt holds, its letters stay in their box.
func FuzzLettering(f *testing.F) {
	f.Add("A lighthouse in the fog", 300, 200, 6)
	f.Add("日本語\n🚀\xff", 16, 17, 1)
	f.Fuzz(func(t *testing.T, text string, width, height, largest int) {
		width, height, largest = min(width, 2000), min(height, 2000), min(largest, 40)
		fit(text, width, height, largest).draw(0, 0, func(x, y int, _ uint8) {
			if x < 0 || y < 0 || x >= width || y >= height {
				t.Fatalf("a dot at %d,%d of %dx%d", x, y, width, height)
			}
		})
	})
}

func BenchmarkClip(b *testing.B) {
	for b.Loop() {
		if _, err := Clip(b.Context(), videoWork()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPicture(b *testing.B) {
	for b.Loop() {
		if _, err := Picture(b.Context(), imageWork(), 0); err != nil {
			b.Fatal(err)
		}
	}
}
