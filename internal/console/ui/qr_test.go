package ui

import (
	"fmt"
	"strings"
	"testing"

	"rsc.io/qr"
)

// TestQRDrawing checks that the path covers exactly the black modules, and that the drawing has a white
// border.
func TestQRDrawing(t *testing.T) {
	t.Parallel()
	text := "otpauth://totp/x:a@example.com?secret=ABCDEFGH&issuer=x"
	got, err := QR{Text: text}.Drawing()
	if err != nil {
		t.Fatal(err)
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	if got.Side != code.Size+8 {
		t.Fatalf("the side is %d, want %d", got.Side, code.Size+8)
	}
	black := map[[2]int]bool{}
	for run := range strings.SplitSeq(strings.TrimSuffix(got.Path, "z"), "z") {
		var x, y, wide, back int
		if _, err := fmt.Sscanf(run, "M%d %dh%dv1h-%d", &x, &y, &wide, &back); err != nil || wide != back {
			t.Fatalf("the path has %q, want a rectangle of one row; error %v", run, err)
		}
		for i := range wide {
			black[[2]int{x + i - 4, y - 4}] = true
		}
	}
	for y := -4; y < code.Size+4; y++ {
		for x := -4; x < code.Size+4; x++ {
			if black[[2]int{x, y}] != code.Black(x, y) {
				t.Fatalf("the module at %d, %d is black: %v, want %v", x, y, black[[2]int{x, y}], code.Black(x, y))
			}
		}
	}
	if _, err := (QR{Text: strings.Repeat("x", 5000)}).Drawing(); err == nil {
		t.Error("Drawing of 5000 bytes returned no error")
	}
}
