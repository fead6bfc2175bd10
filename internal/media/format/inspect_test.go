package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	_ "image/gif" // the formats for comparison in FuzzInspect
	_ "image/jpeg"
	_ "image/png"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/media/formattest"
)

// hugePNG returns a small PNG with the given size in its header.
func hugePNG(width, height uint32) []byte {
	chunk := func(name string, data []byte) []byte {
		out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		out = append(append(out, name...), data...)
		return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
	}
	size := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return formattest.Join([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(size, 8, 2, 0, 0, 0)),
		chunk("IDAT", []byte("\x78\x9c\x03\x00\x00\x00\x00\x01")), chunk("IEND", nil))
}

// TestInspectAccepts checks the content type and size of accepted files.
func TestInspectAccepts(t *testing.T) {
	t.Parallel()
	for contentType, data := range formattest.Samples(t) {
		got, width, height, err := Inspect(data, Policy{})
		if err != nil || got != contentType {
			t.Errorf("%s: detected as %q, error %v", contentType, got, err)
		}
		wantWidth, wantHeight := 12, 7
		switch {
		case contentType == "image/webp":
			wantWidth, wantHeight = 1, 1
		case KindOf(contentType) == KindVideo:
			wantWidth, wantHeight = 0, 0
		}
		if width != wantWidth || height != wantHeight {
			t.Errorf("%s: %d x %d, want %d x %d", contentType, width, height, wantWidth, wantHeight)
		}
	}
	for _, c := range []struct {
		name          string
		data          []byte
		contentType   string
		width, height int
	}{
		{"lossless WebP", formattest.LosslessWebP(t), "image/webp", 1, 1},
		{"extended WebP", formattest.ExtendedWebP(300, 200), "image/webp", 300, 200},
		{"a JPEG with fill bytes before a marker",
			bytes.Replace(formattest.Picture(t, "image/jpeg", 9, 8, 1), []byte("\xff\xdb"), []byte("\xff\xff\xff\xff\xdb"), 1), "image/jpeg", 9, 8},
		{"a JPEG of a camera with another picture behind",
			formattest.Join(formattest.Picture(t, "image/jpeg", 9, 8, 1), formattest.Picture(t, "image/jpeg", 3, 3, 1)), "image/jpeg", 9, 8},
		{"a JPEG of a phone with a clip behind",
			formattest.Join(formattest.Picture(t, "image/jpeg", 9, 8, 1), formattest.Samples(t)["video/mp4"]), "image/jpeg", 9, 8},
		{"a JPEG with a thumbnail inside",
			withThumbnail(formattest.Picture(t, "image/jpeg", 90, 80, 1), formattest.Picture(t, "image/jpeg", 3, 3, 1)), "image/jpeg", 90, 80},
		{"a PNG with zeros behind it", formattest.Join(formattest.Picture(t, "image/png", 9, 8, 1), make([]byte, 100)), "image/png", 9, 8},
		{"an old MOV without ftyp",
			formattest.Join(formattest.Box("moov", "tables"), formattest.Box("mdat", "frames")), "video/quicktime", 0, 0},
		{"an MP4 with an unbounded last box", formattest.Join(formattest.Box("ftyp", "mp42\x00\x00\x00\x00"),
			formattest.Box("moov", ""), []byte("\x00\x00\x00\x00mdatframes")), "video/mp4", 0, 0},
		{"an MP4 with a length of 64 bits", formattest.Join(formattest.Box("ftyp", "mp42\x00\x00\x00\x00"),
			[]byte("\x00\x00\x00\x01mdat\x00\x00\x00\x00\x00\x00\x00\x12xx"), formattest.Box("moov", "")), "video/mp4", 0, 0},
		{"an MP4 with bytes behind",
			formattest.Join(formattest.Samples(t)["video/mp4"], []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09")), "video/mp4", 0, 0},
		{"a live WebM", formattest.WebM("webm", "\x01\xff\xff\xff\xff\xff\xff\xffclusters"), "video/webm", 0, 0},
		{"a live WebM with a short length", formattest.WebM("webm", "\xffclusters"), "video/webm", 0, 0},
		{"a playable clip", fakestudio.Clip(), "video/mp4", 0, 0},
		{"the longest side", hugePNG(16384, 6000), "image/png", 16384, 6000},
	} {
		contentType, width, height, err := Inspect(c.data, Policy{})
		if err != nil || contentType != c.contentType || width != c.width || height != c.height {
			t.Errorf("%s: %s %d x %d (%v), want %s %d x %d", c.name, contentType, width, height, err, c.contentType, c.width, c.height)
		}
	}
}

// withThumbnail returns a JPEG with another JPEG in its first segment.
func withThumbnail(data, thumbnail []byte) []byte {
	segment := binary.BigEndian.AppendUint16([]byte("\xff\xe1"), uint16(2+len(thumbnail)))
	return formattest.Join(data[:2], segment, thumbnail, data[2:])
}

// TestInspectRejects checks the errors for rejected files.
func TestInspectRejects(t *testing.T) {
	t.Parallel()
	png, jpeg := formattest.Picture(t, "image/png", 12, 7, 1), formattest.Picture(t, "image/jpeg", 12, 7, 1)
	gif, mp4 := formattest.Picture(t, "image/gif", 12, 7, 1), formattest.Samples(t)["video/mp4"]
	zip := []byte("PK\x03\x04\x14\x00" + strings.Repeat("x", 2000) + "PK\x05\x06" + strings.Repeat("\x00", 18))
	for _, c := range []struct {
		name   string
		data   []byte
		policy Policy
		want   string // part of the error text
	}{
		{"an empty file", nil, Policy{}, "is empty"},
		{"an SVG", []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), Policy{}, "SVG"},
		{"a page", []byte("\n <!DOCTYPE HTML><script>alert(1)</script>"), Policy{}, "HTML"},
		{"an error in JSON", []byte(`{"error":"gone"}`), Policy{}, "JSON"},
		{"a PDF", []byte("%PDF-1.7\n"), Policy{}, "PDF"},
		{"a HEIC", formattest.Box("ftyp", "heic\x00\x00\x00\x00mif1heic"), Policy{}, "HEIC"},
		{"an AVIF", formattest.Box("ftyp", "avif\x00\x00\x00\x00mif1avif"), Policy{}, "AVIF"},
		{"sound", formattest.Box("ftyp", "M4A \x00\x00\x00\x00"), Policy{}, "sound"},
		{"a BMP", []byte("BM" + strings.Repeat("\x00", 60)), Policy{}, "BMP"},
		{"a TIFF", []byte("II*\x00" + strings.Repeat("\x00", 60)), Policy{}, "TIFF"},
		{"a Matroska", formattest.WebM("matroska", "\x88clusters"), Policy{}, "Matroska"},
		{"an AVI", []byte("RIFF\x00\x00\x00\x00AVI LIST"), Policy{}, "AVI"},
		{"a ZIP", zip, Policy{}, "ZIP"},
		{"base64", []byte("iVBORw0KGgo="), Policy{}, "format is unknown"},
		{"a data URI", []byte("data:image/png;base64,iVBORw0KGgo="), Policy{}, "data URI"},
		{"the signature of a PNG alone", png[:8], Policy{}, "cut off"},
		{"a PNG without its end", png[:len(png)-1], Policy{}, "cut off"},
		{"a PNG without its header", formattest.Join(png[:8], png[33:]), Policy{}, "cut off"},
		{"a PNG of no size", hugePNG(0, 5), Policy{}, "cut off"},
		{"a JPEG without its end", jpeg[:len(jpeg)-1], Policy{}, "cut off"},
		{"a JPEG without a picture", []byte("\xff\xd8\xff\xd9"), Policy{}, "cut off"},
		{"a GIF without its end", gif[:len(gif)-1], Policy{}, "cut off"},
		{"a GIF that is a script", []byte("GIF89a/*\x0a\x00\x00\x00\x00*/=1;alert(1)//"), Policy{}, "cut off"},
		{"a WebP without its end", formattest.LossyWebP(t)[:40], Policy{}, "cut off"},
		{"an MP4 without its end", mp4[:len(mp4)-1], Policy{}, "cut off"},
		{"an MP4 without its tables", formattest.Join(formattest.Box("ftyp", "isom\x00\x00\x02\x00"), formattest.Box("mdat", "frames")),
			Policy{}, "cut off"},
		{"an MP4 with one box", formattest.Box("ftyp", "isom\x00\x00\x02\x00"), Policy{}, "cut off"},
		{"a WebM without its end", formattest.WebM("webm", "\x89clusters"), Policy{}, "cut off"},
		{"a WebM without content", formattest.WebM("webm", "")[:30], Policy{}, "cut off"},
		{"a wide bomb", hugePNG(16385, 1), Policy{}, "16385 x 1 pixels"},
		{"a high bomb", hugePNG(1, 2_000_000_000), Policy{}, "2000000000 pixels"},
		{"a square bomb", hugePNG(16384, 16384), Policy{}, "100000000 in all"},
		{"a WebP bomb", formattest.ExtendedWebP(1<<24, 1<<24), Policy{}, "pixels"},
		{"a GIF bomb", formattest.Join([]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), []byte("\x3b")), Policy{}, "65535 x 65535"},
		{"a GIF whose image is larger than its screen",
			formattest.Join([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00\x2c\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02\x00"), []byte("\x3b")),
			Policy{}, "65535 x 65535"},
		{"a JPEG bomb", jpegOf(t, 65535, 65535), Policy{}, "65535 x 65535"},
		{"a JPEG with a bomb as second picture", formattest.Join(jpeg[:len(jpeg)-2], jpegOf(t, 60000, 60000)[2:]), Policy{}, "60000 x 60000"},
		{"a PNG and a page", formattest.Join(png, []byte("<html><script>alert(1)</script>")), Policy{}, "also something else"},
		{"a page in the head of a PNG", formattest.Join(png[:33], pngText("<sCript>alert(1)</script>"), png[33:]), Policy{},
			"also something else"},
		{"a PDF in the head of a JPEG", formattest.Join(jpeg[:2], []byte("\xff\xfe\x00\x0a%PDF-1.4"), jpeg[2:]), Policy{}, "also something else"},
		{"a JPEG and an archive", formattest.Join(jpeg, zip), Policy{}, "also something else"},
		{"a GIF and an archive after zeros", formattest.Join(gif, make([]byte, 5000), zip), Policy{}, "also something else"},
		{"a WebP and an archive", formattest.Join(formattest.LossyWebP(t), []byte("Rar!\x1a\x07\x00")), Policy{}, "also something else"},
		{"too many bytes", png, Policy{ImageSize: int64(len(png)) - 1}, "bytes, more than the"},
		{"too many bytes of a video", mp4, Policy{VideoSize: 5}, "bytes, more than the allowed 5"},
		{"too many pixels", png, Policy{Pixels: 83}, "12 x 7 pixels"},
		{"too long a side", png, Policy{Side: 11}, "12 x 7 pixels"},
		{"a video instead of an image", mp4, Policy{Kinds: []string{KindImage}}, "video/mp4. Send a PNG, JPEG, WebP or GIF image."},
		{"an image instead of a video", png, Policy{Kinds: []string{KindVideo}}, "image/png. Send an MP4, WebM or MOV video."},
	} {
		contentType, width, height, err := Inspect(c.data, c.policy)
		var fileError *FileError
		if !errors.As(err, &fileError) || !strings.Contains(fileError.Text, c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
		if contentType != "" || width != 0 || height != 0 {
			t.Errorf("%s: rejected, but got %s %d x %d", c.name, contentType, width, height)
		}
	}
	if _, _, _, err := Inspect(png, Policy{ImageSize: int64(len(png)), Pixels: 84, Side: 12}); err != nil {
		t.Errorf("a file at the limits was rejected: %v", err)
	}
	if _, _, _, err := Inspect(formattest.Join(png, make([]byte, defaultImageSize)), Policy{}); err == nil {
		t.Error("an image of more than 30 MiB was accepted")
	}
}

// jpegOf returns a JPEG with the given size in its header.
func jpegOf(t *testing.T, width, height uint16) []byte {
	data := bytes.Clone(formattest.Picture(t, "image/jpeg", 12, 7, 1))
	frame := bytes.Index(data, []byte("\xff\xc0"))
	if frame < 0 {
		t.Fatal("the JPEG has no frame")
	}
	binary.BigEndian.PutUint16(data[frame+5:], height)
	binary.BigEndian.PutUint16(data[frame+7:], width)
	return data
}

// pngText returns a text chunk.
func pngText(text string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	out = append(out, "tEXt"+text...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// seeds returns the seed files for fuzzing.
func seeds(t testing.TB) [][]byte {
	all := [][]byte{
		nil, formattest.LosslessWebP(t), formattest.ExtendedWebP(20000, 20000), hugePNG(1<<31-1, 1<<31-1), []byte("<svg>"),
		formattest.WebM("webm", "\x01\xff\xff\xff\xff\xff\xff\xff"), formattest.WebM("matroska", "\x80"),
		formattest.Box("ftyp", "heic"), formattest.Box("moov", ""),
		[]byte("\x00\x00\x00\x01mdat\xff\xff\xff\xff\xff\xff\xff\xff"), []byte("\xff\xd8\xff\xff\xff\xc0\x00\x03"),
	}
	for _, data := range formattest.Samples(t) {
		all = append(all, data, data[:len(data)/2])
	}
	return all
}

// FuzzInspect checks that Inspect returns a *FileError or a kind, that Shape does not depend on how
// the bytes are split, and that the size is at least the size found by real decoders.
func FuzzInspect(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		contentType, width, height, err := Inspect(data, Policy{})
		if err != nil {
			var fileError *FileError
			if !errors.As(err, &fileError) || fileError.Text == "" || !utf8.ValidString(fileError.Text) {
				t.Fatalf("got error %v, want a *FileError", err)
			}
		} else if kind := KindOf(contentType); kind == "" || (kind == KindImage) != (width > 0 && height > 0) ||
			int64(width)*int64(height) > defaultPixels {
			t.Fatalf("accepted as %s of %d x %d pixels", contentType, width, height)
		}
		if contentType := Sniff(data[:min(len(data), HeadSize)]); contentType != "" {
			whole, parts := NewShape(contentType), NewShape(contentType)
			wholeErr := whole.Feed(data)
			if wholeErr == nil {
				wholeErr = whole.Finish()
			}
			var partsErr error
			for chunk := range slices.Chunk(data, int(piece)+1) {
				if partsErr = parts.Feed(chunk); partsErr != nil {
					break
				}
			}
			if partsErr == nil {
				partsErr = parts.Finish()
			}
			if (wholeErr == nil) != (partsErr == nil) || whole.width != parts.width || whole.height != parts.height || whole.end != parts.end {
				t.Fatalf("at once: %v %d x %d to %d; in parts of %d: %v %d x %d to %d", wholeErr, whole.width, whole.height, whole.end,
					int(piece)+1, partsErr, parts.width, parts.height, parts.end)
			}
			if whole.ended && wholeErr == nil && (whole.end < 0 || whole.end > int64(len(data))) {
				t.Fatalf("the file ends at %d, but has %d bytes", whole.end, len(data))
			}
		}
		if err != nil {
			return
		}
		// Decoders return the size of the first frame; Inspect returns that of the largest.
		if config, format, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
			if "image/"+format != contentType {
				t.Fatalf("got %s, decoders return %s", contentType, format)
			}
			if config.Width > width || config.Height > height {
				t.Fatalf("got %d x %d, decoders return %d x %d", width, height, config.Width, config.Height)
			}
		}
	})
}
