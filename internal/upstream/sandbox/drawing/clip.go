package drawing

import (
	"context"
	"fmt"
	"image"
	"image/color"

	"tollgate/internal/upstream/jobcall"
)

// MaxSeconds is the longest clip.
const MaxSeconds = 120

// How clips move.
const (
	clipRate   = 25 // pictures a second
	keyEvery   = 2 * clipRate
	bounceTime = 30 // pictures from one touch of the ground to the next
)

// paint is a colour as video has it: brightness and two parts of hue.
type paint struct{ bright, blue, red uint8 }

// paintOf converts a colour to that of high definition video.
func paintOf(c color.RGBA) paint {
	r, g, b := int(c.R), int(c.G), int(c.B)
	return paint{
		uint8(16 + (47*r+157*g+16*b+128)/256),
		uint8((128*256 - 26*r - 86*g + 112*b + 128) / 256),
		uint8((128*256 + 112*r - 102*g - 10*b + 128) / 256),
	}
}

// Clip makes the video of a work and returns it as MP4.
func Clip(ctx context.Context, w jobcall.Task) ([]byte, error) {
	l := lookOf(w, 0)
	s := &stage{frame: newFrame(l.shown[0], l.shown[1]), seconds: seconds(w)}
	if err := s.set(ctx, l, w); err != nil {
		return nil, err
	}
	e := &encoder{width: l.shown[0], height: l.shown[1], rate: clipRate}
	f := &film{width: e.width, height: e.height, rate: clipRate, sequence: e.sequence(), set: e.set()}
	for n := range s.seconds * clipRate {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.move(n)
		if n%keyEvery == 0 {
			f.keys = append(f.keys, uint32(n+1))
			f.pictures = append(f.pictures, e.key(s.frame))
		} else {
			f.pictures = append(f.pictures, e.next(s.frame))
		}
	}
	return f.mp4(), nil
}

// seconds is how long the clip of a work is.
func seconds(w jobcall.Task) int {
	if w.Seconds <= 0 {
		return freeSeconds
	}
	return int(min(w.Seconds, MaxSeconds))
}

// stage is the scene of a clip: a landscape that stays, a ball that bounces
// over it, and a bar and a clock that tell the time. Its measures are cells.
type stage struct {
	*frame
	seconds int
	ground  []uint8         // the landscape's brightness, without the ball
	boards  image.Rectangle // the prompt's board: the ball stays below it
	bar     image.Rectangle // the board of bar and clock
	clocked bool            // there is room for the clock
	dark    uint8           // of boards
	ball    image.Rectangle // where the ball is
}

// set builds the scene.
func (s *stage) set(ctx context.Context, l look, w jobcall.Task) error {
	width, height := s.size()
	var tones [skySteps]paint
	for i := range tones {
		tones[i] = paintOf(l.sky(i, skySteps-1))
	}
	for x := range width {
		var ridges [hills]int
		for layer := range hills {
			ridges[layer] = l.ridge(layer, x, width, height)
		}
		for y := range height {
			c := tones[min(y*skySteps/max(height*62/100, 1), skySteps-1)]
			for layer := hills - 1; layer >= 0; layer-- {
				if y >= ridges[layer] {
					c = paintOf(l.hill(layer))
					break
				}
			}
			s.frame.set(x, y, c.bright)
			if x%blockCells == 0 && y%blockCells == blockCells/2 { // the block's hue is that of its middle
				s.tint(x, y, c.blue, c.red)
			}
		}
	}
	board := paintOf(l.board())
	s.dark = board.bright
	inner := image.Rect(blockCells, blockCells, width-blockCells, height-blockCells)
	s.bar = image.Rect(0, height-blockCells, width, height)
	if s.clocked = height >= 4*letterHeight && width >= 20*letterWidth; s.clocked {
		s.bar.Min.Y = whole(height - letterHeight - blockCells)
	}
	s.board(s.bar, board)
	if err := s.thumbnails(ctx, w, inner); err != nil {
		return err
	}
	text := w.Prompt
	if text == "" {
		text = "(no prompt)"
	}
	said := fit(text, inner.Dx()-2*blockCells, height/2-2*blockCells, 3)
	if len(said.rows) > 0 {
		s.boards = image.Rect(inner.Min.X, inner.Min.Y, whole(inner.Max.X), inner.Min.Y+whole(said.height()+2*blockCells))
		s.board(s.boards, board)
		said.draw(s.boards.Min.X+blockCells, s.boards.Min.Y+blockCells, s.letters)
	}
	s.ground = append([]uint8(nil), s.bright...)
	return nil
}

// whole rounds cells up to whole macroblocks.
func whole(cells int) int { return (cells + blockCells - 1) / blockCells * blockCells }

// board paints a rectangle of whole macroblocks.
func (s *stage) board(r image.Rectangle, c paint) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			s.frame.set(x, y, c.bright)
			s.tint(x, y, c.blue, c.red)
		}
	}
}

// letters is ink on a board.
func (s *stage) letters(x, y int, alpha uint8) {
	s.frame.set(x, y, s.dark+uint8((235-int(s.dark))*int(alpha)/255))
}

// thumbnails shows the references above the bar. A cell is a dot of them, and
// a macroblock has one hue, so they are rough.
func (s *stage) thumbnails(ctx context.Context, w jobcall.Task, inner image.Rectangle) error {
	_, height := s.size()
	side := whole(height/4) - blockCells
	left, bottom := inner.Min.X, s.bar.Min.Y-blockCells
	for _, ref := range references(w) {
		if left+side > inner.Max.X || side < 2*blockCells {
			return nil
		}
		img, err := thumbnail(ctx, ref, side)
		if err != nil {
			return err
		}
		for y := range side {
			for x := range side {
				c := color.RGBA{20, 20, 20, 255} // beside what is not square
				if image.Pt(x, y).In(img.Rect) {
					c = img.RGBAAt(x, y)
				}
				p := paintOf(c)
				s.frame.set(left+x, bottom-side+y, p.bright)
				if x%blockCells == blockCells/2 && y%blockCells == blockCells/2 {
					s.tint(left+x, bottom-side+y, p.blue, p.red)
				}
			}
		}
		left += side + blockCells
	}
	return nil
}

// move changes the scene to the n-th picture.
func (s *stage) move(n int) {
	s.clock(n)
	width, _ := s.size()
	for y := s.ball.Min.Y; y < s.ball.Max.Y; y++ { // the landscape again where the ball was
		for x := s.ball.Min.X; x < s.ball.Max.X; x++ {
			s.frame.set(x, y, s.ground[y*width+x])
		}
	}
	space := image.Rect(0, s.boards.Max.Y, width, s.bar.Min.Y)
	radius := min(space.Dx(), space.Dy()) / 8
	if radius < 1 {
		s.ball = image.Rectangle{}
		return
	}
	across := space.Dx() - 2*radius
	at := n * max(across, 1) / (3 * clipRate) % (2 * max(across, 1)) // three seconds from side to side
	if at > across {
		at = 2*across - at
	}
	t := n % bounceTime
	high := (space.Dy() - 2*radius) * 4 * t * (bounceTime - t) / (bounceTime * bounceTime)
	centre := image.Pt(space.Min.X+radius+at, space.Max.Y-radius-1-high)
	s.ball = image.Rect(centre.X-radius, centre.Y-radius, centre.X+radius+1, centre.Y+radius+1).Intersect(space)
	for y := s.ball.Min.Y; y < s.ball.Max.Y; y++ {
		for x := s.ball.Min.X; x < s.ball.Max.X; x++ {
			switch {
			case inside(x, y, centre.Add(image.Pt(-radius/3, -radius/3)), radius/4):
				s.frame.set(x, y, 235)
			case inside(x, y, centre, radius-1):
				s.frame.set(x, y, 205)
			case inside(x, y, centre, radius): // a rim, so that it is seen before a bright sky
				s.frame.set(x, y, 60)
			}
		}
	}
}

// clock shows the time in seconds, and as a bar.
func (s *stage) clock(n int) {
	begin, end := s.bar.Min.X+blockCells, s.bar.Max.X-blockCells
	if s.clocked {
		label := fmt.Sprintf("%d.%d / %d s", n/clipRate, n*10/clipRate%10, s.seconds)
		left, top := end-letterWidth*len(label), s.bar.Min.Y+(s.bar.Dy()-letterHeight)/2
		s.erase(image.Rect(left, top, end, top+letterHeight))
		drawRow([]rune(label), left, top, 1, s.letters)
		end = left - 2*blockCells
	}
	full := begin + (end-begin)*(n+1)/(s.seconds*clipRate)
	middle := s.bar.Min.Y + s.bar.Dy()/2
	for y := middle - 2; y < middle+1; y++ {
		for x := begin; x < end; x++ {
			if x < full {
				s.frame.set(x, y, 200)
			} else {
				s.frame.set(x, y, s.dark+30)
			}
		}
	}
}

// erase empties a part of a board for letters.
func (s *stage) erase(r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			s.frame.set(x, y, s.dark)
		}
	}
}
