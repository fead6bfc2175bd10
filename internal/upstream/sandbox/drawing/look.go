package drawing

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// Bounds of what is drawn. Larger ones are drawn smaller, in their ratio.
const (
	maxPicturePixels = 2048 * 2048 * 3 / 2
	maxClipPixels    = 2560 * 1440
	maxSide          = 8192
	minClipSide      = 64
	freeSeconds      = 5 // where the work leaves the length open
)

// hills is how many ranges of hills a picture has.
const hills = 5

// look is what the pictures of one result have in common: a landscape whose
// colours and shapes follow from the prompt and the params, and from which of
// the images it is. It is drawn with whole numbers alone, so that it is the
// same on every machine.
type look struct {
	width, height int    // what was asked for
	shown         [2]int // what is drawn, smaller if that is too much
	hue           int    // of hueRound
	phases        [2 * hills]uint16
	sun           int // where it stands, in thousandths of the width
}

// lookOf decides how one result of a work looks.
func lookOf(w jobcall.Task, index int) look {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %q %s %q", w.Kind, index, w.Prompt, w.Params, w.Model))
	l := look{
		hue: int(binary.BigEndian.Uint16(sum[0:])) % hueRound,
		sun: 200 + int(sum[2])*600/255,
	}
	for i := range l.phases {
		l.phases[i] = binary.BigEndian.Uint16(sum[4+2*i:])
	}
	l.width, l.height = pixels(w)
	most := maxPicturePixels
	if w.Kind == upstream.KindVideo {
		most = maxClipPixels
	}
	l.shown[0], l.shown[1] = bounded(l.width, l.height, most)
	if w.Kind == upstream.KindVideo { // the chroma of video has half as many rows and columns
		l.shown[0], l.shown[1] = max(l.shown[0]&^1, minClipSide), max(l.shown[1]&^1, minClipSide)
	}
	return l
}

// pixels is the size that a work wants: as it says, else by tier and ratio.
func pixels(w jobcall.Task) (width, height int) {
	if w.Width > 0 && w.Height > 0 {
		return w.Width, w.Height
	}
	across, up := int64(1), int64(1)
	if w.Kind == upstream.KindVideo {
		across, up = 16, 9
	}
	if a, b, ok := strings.Cut(w.Ratio, ":"); ok {
		if a, errA := strconv.ParseInt(a, 10, 32); errA == nil && a > 0 {
			if b, errB := strconv.ParseInt(b, 10, 32); errB == nil && b > 0 {
				across, up = a, b
			}
		}
	}
	side := int64(1024)
	if n, ok := strings.CutSuffix(w.Tier, "K"); ok {
		if n, err := strconv.ParseInt(n, 10, 16); err == nil && n > 0 {
			side = 1024 * n
		}
	} else if n, ok := strings.CutSuffix(w.Tier, "p"); ok {
		if n, err := strconv.ParseInt(n, 10, 32); err == nil && n > 0 {
			return int(n * across / min(across, up)), int(n * up / min(across, up))
		}
	}
	// As many pixels as a square of that side.
	width = int(math.Sqrt(float64(side*side) * float64(across) / float64(up)))
	return width, int(side * side / int64(max(width, 1)))
}

// bounded scales a size down to so many pixels and the longest side.
func bounded(width, height, most int) (int, int) {
	scale := 1.0
	if n := float64(width) * float64(height); n > float64(most) {
		scale = math.Sqrt(float64(most) / n)
	}
	scale = min(scale, maxSide/float64(max(width, height, 1)))
	if scale < 1 {
		width, height = int(float64(width)*scale), int(float64(height)*scale)
	}
	return max(width, 1), max(height, 1)
}

// note says in a row what else there is to say of a result.
func (l look) note(w jobcall.Task, index int) string {
	parts := []string{w.Model, fmt.Sprintf("%dx%d", l.width, l.height)}
	if w.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d", index+1, w.Count))
	}
	if l.shown != [2]int{l.width, l.height} {
		parts = append(parts, fmt.Sprintf("drawn at %dx%d", l.shown[0], l.shown[1]))
	}
	if len(w.Params) > 0 {
		parts = append(parts, string(w.Params[:min(len(w.Params), 200)]))
	}
	return strings.Join(parts, " · ")
}

// ridge is the height of a range of hills above a column, in a picture of the
// given size; ranges are counted from the farthest.
func (l look) ridge(layer, x, width, height int) int {
	along := x * 65536 / width
	swing := 2*wave(uint16(along*(2+layer)/2)+l.phases[2*layer]) + wave(uint16(along*(5+2*layer)/2)+l.phases[2*layer+1])
	return height*(54+9*layer)/100 - height*(8-layer)*swing/(100*3*waveTop)
}

// waveTop is the highest value of wave.
const waveTop = 4096

// wave is a smooth curve that swings once while the phase goes round: two
// parabolas.
func wave(phase uint16) int {
	t := int(phase & 0x7FFF)
	v := t * (0x8000 - t) / (0x4000 * 0x4000 / waveTop)
	if phase >= 0x8000 {
		return -v
	}
	return v
}

// Colours of the landscape.
func (l look) sky(part, whole int) color.RGBA { // from the top down to the horizon
	return mix(tone(l.hue+40, 150, 88), tone(l.hue+190, 215, 196), part, whole)
}
func (l look) sunlight() color.RGBA { return tone(l.hue+250, 235, 228) }
func (l look) hill(layer int) color.RGBA {
	return tone(l.hue-60*layer, 120-8*layer, 128-22*layer)
}
func (l look) board() color.RGBA { return tone(l.hue, 70, 24) }

// hueRound is how many hues there are.
const hueRound = 1536

// tone is a colour by hue (of hueRound), saturation and lightness (of 255).
func tone(hue, saturation, light int) color.RGBA {
	hue = ((hue % hueRound) + hueRound) % hueRound
	strength := saturation * (255 - max(2*light-255, 255-2*light)) / 255
	part := func(shift int) uint8 {
		at := (hue + shift) % hueRound // 0: the middle of this part of the spectrum
		if at > hueRound/2 {
			at = hueRound - at
		}
		v := min(max(512-at, 0), 256) // 256 within a sixth, falling to 0 within the next
		return uint8(min(max(light-strength/2+strength*v/256, 0), 255))
	}
	return color.RGBA{part(0), part(2 * hueRound / 3), part(hueRound / 3), 255}
}

// mix is a colour between two.
func mix(from, to color.RGBA, part, whole int) color.RGBA {
	between := func(a, b uint8) uint8 { return uint8((int(a)*(whole-part) + int(b)*part) / whole) }
	return color.RGBA{between(from.R, to.R), between(from.G, to.G), between(from.B, to.B), 255}
}

// inside tells whether a point is in a disc.
func inside(x, y int, centre image.Point, radius int) bool {
	x, y = x-centre.X, y-centre.Y
	return x*x+y*y <= radius*radius
}
