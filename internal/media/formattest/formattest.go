// Package formattest owns small files of accepted and rejected formats for tests.
//
// Invariant: the package builds each file itself, with encoders that the product does not have.
package formattest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"
)

// Samples returns a small file of each content type.
func Samples(t testing.TB) map[string][]byte {
	t.Helper()
	return map[string][]byte{
		"image/png":       Picture(t, "image/png", 12, 7, 1),
		"image/jpeg":      Picture(t, "image/jpeg", 12, 7, 1),
		"image/gif":       Picture(t, "image/gif", 12, 7, 1),
		"image/webp":      LossyWebP(t),
		"video/mp4":       Join(Box("ftyp", "isom\x00\x00\x02\x00isommp42"), Box("moov", "tables"), Box("mdat", "frames")),
		"video/quicktime": Join(Box("ftyp", "qt  \x00\x00\x02\x00qt  "), Box("wide", ""), Box("mdat", "frames"), Box("moov", "tables")),
		"video/webm":      WebM("webm", "\x88clusters"),
	}
}

// LossyWebP returns a picture of one pixel.
func LossyWebP(t testing.TB) []byte {
	return decode(t, "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
}

// LosslessWebP returns a picture of one pixel.
func LosslessWebP(t testing.TB) []byte {
	return decode(t, "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
}

// ExtendedWebP returns an empty canvas of the given size.
func ExtendedWebP(width, height int) []byte {
	data := []byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00")
	for _, n := range []int{width - 1, height - 1} {
		data = append(data, byte(n), byte(n>>8), byte(n>>16))
	}
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
	return data
}

func decode(t testing.TB, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Join concatenates parts.
func Join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Box returns a box of an MP4.
func Box(name, content string) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(8+len(content)))
	return append(append(data, name...), content...)
}

// WebM returns an EBML file. segment is the length and content of its segment.
func WebM(docType, segment string) []byte {
	header := "\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82"
	data := append([]byte("\x1a\x45\xdf\xa3"), byte(0x80|(len(header)+1+len(docType))))
	data = append(data, header...)
	data = append(data, byte(0x80|len(docType)))
	data = append(data, docType...)
	data = append(data, "\x18\x53\x80\x67"...)
	return append(data, segment...)
}

// Picture encodes an image of random pixels in the format of contentType.
func Picture(t testing.TB, contentType string, width, height int, seed uint64) []byte {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = byte(random.Uint32())
	}
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	var out bytes.Buffer
	var err error
	switch contentType {
	case "image/png":
		err = (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&out, img)
	case "image/jpeg":
		err = jpeg.Encode(&out, img, &jpeg.Options{Quality: 95})
	case "image/gif":
		paletted := image.NewPaletted(img.Rect, color.Palette{color.Black, color.White, color.RGBA{255, 0, 0, 255}})
		for i := range paletted.Pix {
			paletted.Pix[i] = byte(random.Uint32() % 3)
		}
		err = gif.EncodeAll(&out, &gif.GIF{Image: []*image.Paletted{paletted, paletted}, Delay: []int{1, 1}})
	default:
		t.Fatalf("no encoder of %s", contentType)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
