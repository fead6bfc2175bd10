package fakestudio

import (
	"bytes"
	"image/png"
	"testing"
)

func TestPicture(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for n := range 300 {
		data := Picture(n)
		if other, ok := seen[string(data)]; ok {
			t.Fatalf("pictures %d and %d are the same", n, other)
		}
		seen[string(data)] = n
		if !bytes.Equal(data, Picture(n)) {
			t.Fatalf("picture %d differs at the second call", n)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil || img.Bounds().Dx() != 64 || img.Bounds().Dy() != 48 {
			t.Fatalf("picture %d: %v", n, err)
		}
	}
}
