package media

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"testing"
)

// samples has a small file of each content type.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	return map[string][]byte{
		"image/png":       picture(t, "image/png", 12, 7, 1),
		"image/jpeg":      picture(t, "image/jpeg", 12, 7, 1),
		"image/gif":       picture(t, "image/gif", 12, 7, 1),
		"image/webp":      lossyWebP(t),
		"video/mp4":       join(box("ftyp", "isom\x00\x00\x02\x00isommp42"), box("moov", "tables"), box("mdat", "frames")),
		"video/quicktime": join(box("ftyp", "qt  \x00\x00\x02\x00qt  "), box("wide", ""), box("mdat", "frames"), box("moov", "tables")),
		"video/webm":      webM("webm", "\x88clusters"),
	}
}

// lossyWebP is a picture of one pixel.
func lossyWebP(t testing.TB) []byte {
	return decode(t, "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
}

// losslessWebP is a picture of one pixel.
func losslessWebP(t testing.TB) []byte {
	return decode(t, "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
}

// extendedWebP is a canvas of a size and nothing on it.
func extendedWebP(width, height int) []byte {
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

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// box makes a box of an MP4.
func box(name, content string) []byte {
	data := binary.BigEndian.AppendUint32(nil, uint32(8+len(content)))
	return append(append(data, name...), content...)
}

// webM makes an EBML file whose segment is a length and its content.
func webM(docType, segment string) []byte {
	header := "\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82"
	data := append([]byte("\x1a\x45\xdf\xa3"), byte(0x80|(len(header)+1+len(docType))))
	data = append(data, header...)
	data = append(data, byte(0x80|len(docType)))
	data = append(data, docType...)
	data = append(data, "\x18\x53\x80\x67"...)
	return append(data, segment...)
}
