package drawing

import "bytes"

// H.264 baseline of pictures that are made of flat cells, four by four pixels
// of one brightness, and macroblocks, sixteen by sixteen of one hue. Such a
// picture needs nothing but the mean of each block, so the encoder has no
// transform and no loss: at the quantizer below one level is one step of
// brightness, and two are one of hue. What did not change since the picture
// before is skipped.

// The geometry of pictures, and the quantizer at which levels are steps.
const (
	cellSize     = 4
	blockSize    = 16 // a macroblock's side in pixels
	blockCells   = blockSize / cellSize
	stepQuantity = 16
	noHue        = 128
)

// frame is a picture in cells and macroblocks. Its methods take cells.
type frame struct {
	wide, high int     // in macroblocks
	bright     []uint8 // a cell each, 16 to 235
	blue, red  []uint8 // hue, a macroblock each
	changed    []bool  // macroblocks that changed since the last picture
}

// newFrame makes a black picture that covers so many pixels.
func newFrame(width, height int) *frame {
	f := &frame{wide: (width + blockSize - 1) / blockSize, high: (height + blockSize - 1) / blockSize}
	n := f.wide * f.high
	f.bright, f.changed = bytes.Repeat([]byte{16}, n*blockCells*blockCells), make([]bool, n)
	f.blue, f.red = bytes.Repeat([]byte{noHue}, n), bytes.Repeat([]byte{noHue}, n)
	return f
}

// size is the picture in cells.
func (f *frame) size() (width, height int) { return f.wide * blockCells, f.high * blockCells }

// at is the brightness of a cell inside the picture.
func (f *frame) at(x, y int) uint8 { return f.bright[y*f.wide*blockCells+x] }

// set changes the brightness of a cell; outside the picture it does nothing.
func (f *frame) set(x, y int, bright uint8) {
	if x < 0 || y < 0 || x >= f.wide*blockCells || y >= f.high*blockCells {
		return
	}
	if i := y*f.wide*blockCells + x; f.bright[i] != bright {
		f.bright[i] = bright
		f.changed[y/blockCells*f.wide+x/blockCells] = true
	}
}

// tint changes the hue of the macroblock that a cell is in.
func (f *frame) tint(x, y int, blue, red uint8) {
	if x < 0 || y < 0 || x >= f.wide*blockCells || y >= f.high*blockCells {
		return
	}
	i := y/blockCells*f.wide + x/blockCells
	if f.blue[i] != blue || f.red[i] != red {
		f.blue[i], f.red[i], f.changed[i] = blue, red, true
	}
}

// encoder writes pictures of one size as units of a stream, without start
// codes. It is not safe for concurrent use.
type encoder struct {
	width, height int // in pixels, even; the frame may be larger
	rate          int // pictures a second
	number        int // of the picture since the last key picture
	keys          int // key pictures so far
	bits          bitWriter
}

// Types of units.
const (
	unitPicture    = 0x41
	unitKey        = 0x65
	unitSequence   = 0x67
	unitPictureSet = 0x68
)

// level is the smallest level of the standard that pictures of a size need.
func level(wide, high, rate int) uint8 {
	n := wide * high
	for _, l := range []struct {
		level       uint8
		size, speed int
	}{{10, 99, 1485}, {20, 396, 11880}, {30, 1620, 40500}, {31, 3600, 108000}, {40, 8192, 245760}, {50, 22080, 589824}} {
		if n <= l.size && n*rate <= l.speed && max(wide, high)*max(wide, high) <= 8*l.size {
			return l.level
		}
	}
	return 51
}

// sequence is the unit that describes all pictures.
func (e *encoder) sequence() []byte {
	wide, high := (e.width+blockSize-1)/blockSize, (e.height+blockSize-1)/blockSize
	b := &e.bits
	b.begin()
	b.put(24, 66<<16|0xC0<<8|uint32(level(wide, high, e.rate))) // constrained baseline
	b.code(0)
	b.code(0) // four bits of picture number
	b.code(2) // pictures are shown in the order of the stream
	b.code(1) // one earlier picture is needed
	b.put(1, 0)
	b.code(uint32(wide - 1))
	b.code(uint32(high - 1))
	b.put(2, 0b11) // whole pictures, not fields
	right, bottom := wide*blockSize-e.width, high*blockSize-e.height
	if right+bottom > 0 {
		b.put(1, 1)
		for _, n := range []int{0, right / 2, 0, bottom / 2} {
			b.code(uint32(n))
		}
	} else {
		b.put(1, 0)
	}
	b.put(1, 1)             // how to show them:
	b.put(9, 0b1_0000_0001) // pixels are square;
	b.put(7, 0b0_1_101_0_1) // brightness is in the narrow range, and
	b.put(24, 0x01_01_01)   // the colours are those of high definition;
	b.put(2, 0b0_1)
	b.put(32, 1)
	b.put(32, uint32(2*e.rate))
	b.put(5, 0b1_0_0_0_1) // times are even;
	b.put(1, 1)
	for _, n := range []uint32{0, 0, 0, 0, 0, 1} { // nothing moves, and no picture waits for a later one
		b.code(n)
	}
	return b.end(unitSequence)
}

// set is the unit with the settings of pictures.
func (e *encoder) set() []byte {
	b := &e.bits
	b.begin()
	b.code(0)
	b.code(0)
	b.put(2, 0) // codes of variable length
	b.code(0)
	b.code(0)
	b.code(0)
	b.put(3, 0)
	b.signed(stepQuantity - 26)
	b.signed(0)
	b.signed(0)
	b.put(3, 0b100) // pictures say how edges are filtered
	return b.end(unitPictureSet)
}

// key writes a picture that needs no other.
func (e *encoder) key(f *frame) []byte {
	b := &e.bits
	e.number = 0
	b.begin()
	b.code(0)
	b.code(7)
	b.code(0)
	b.put(4, 0)
	b.code(uint32(e.keys % 2)) // neighbours must differ
	b.put(2, 0)
	b.signed(0)
	b.code(1) // edges are not filtered
	for y := range f.high {
		for x := range f.wide {
			e.block(f, x, y, 0)
		}
	}
	e.keys++
	clear(f.changed)
	return b.end(unitKey)
}

// next writes what changed since the picture before.
func (e *encoder) next(f *frame) []byte {
	b := &e.bits
	e.number++
	b.begin()
	b.code(0)
	b.code(5)
	b.code(0)
	b.put(4, uint32(e.number%16))
	b.put(3, 0)
	b.signed(0)
	b.code(1)
	skipped := uint32(0)
	for i, changed := range f.changed {
		if !changed {
			skipped++
			continue
		}
		b.code(skipped)
		skipped = 0
		e.block(f, i%f.wide, i/f.wide, 5)
	}
	if skipped > 0 {
		b.code(skipped)
	}
	clear(f.changed)
	return b.end(unitPicture)
}

// How a block is guessed from its neighbours.
const (
	guessMean       = 0 // hue: from the mean
	guessHorizontal = 1
	guessVertical   = 2 // hue; brightness of whole blocks: 0
)

// block writes a macroblock. Kinds of blocks are counted from first on.
func (e *encoder) block(f *frame, x, y int, first uint32) {
	b := &e.bits
	here := y*f.wide + x
	blue, red, guess := noHue, noHue, uint32(guessMean)
	switch {
	case x > 0:
		blue, red, guess = int(f.blue[here-1]), int(f.red[here-1]), guessHorizontal
	case y > 0:
		blue, red, guess = int(f.blue[here-f.wide]), int(f.red[here-f.wide]), guessVertical
	}
	blue, red = int(f.blue[here])-blue, int(f.red[here])-red

	if blue == 0 && red == 0 && guess != guessMean && f.repeats(x, y, guess) {
		kind := uint32(1) // a whole block, guessed, and nothing to correct
		if guess == guessHorizontal {
			kind = 2
		}
		b.code(first + kind)
		b.code(guess)
		b.signed(0)
		b.put(1, 1)
		return
	}

	b.code(first)
	b.put(16, 0xFFFF) // every small block is guessed from the mean
	b.code(guess)
	hues := blue != 0 || red != 0
	levels, any := f.corrections(x, y)
	switch { // the code of which parts are corrected
	case any && hues:
		b.code(1)
	case any:
		b.code(2)
	case hues:
		b.code(16)
	default:
		b.code(3)
		return
	}
	b.signed(0)
	if any {
		for _, l := range levels {
			b.luma(l)
		}
	}
	if hues {
		b.chroma(2 * blue)
		b.chroma(2 * red)
	}
}

// repeats tells whether a macroblock goes on as its neighbour ends, cell by
// cell.
func (f *frame) repeats(x, y int, guess uint32) bool {
	x, y = x*blockCells, y*blockCells
	for dy := range blockCells {
		for dx := range blockCells {
			from := f.at(x+dx, max(y-1, 0))
			if guess == guessHorizontal {
				from = f.at(max(x-1, 0), y+dy)
			}
			if f.at(x+dx, y+dy) != from {
				return false
			}
		}
	}
	return true
}

// corrections are the differences between the cells of a macroblock and what
// they are guessed from, the mean of the cells above and left, in the order of
// the standard; and whether there is any.
func (f *frame) corrections(x, y int) (levels [16]int, some bool) {
	x, y = x*blockCells, y*blockCells
	for i := range levels {
		cx, cy := x+i/4%2*2+i%2, y+i/8*2+i/2%2
		guess := 128
		switch {
		case cx > 0 && cy > 0:
			guess = (4*int(f.at(cx-1, cy)) + 4*int(f.at(cx, cy-1)) + 4) / 8
		case cx > 0:
			guess = int(f.at(cx-1, cy))
		case cy > 0:
			guess = int(f.at(cx, cy-1))
		}
		levels[i] = int(f.at(cx, cy)) - guess
		some = some || levels[i] != 0
	}
	return levels, some
}

// bitWriter writes the bits of a unit.
type bitWriter struct {
	out   []byte
	cache uint64
	held  int // bits in cache
}

// begin starts a unit.
func (b *bitWriter) begin() { b.out, b.cache, b.held = b.out[:0], 0, 0 }

// put adds the low bits of a number, at most 32.
func (b *bitWriter) put(width int, value uint32) {
	b.cache = b.cache<<width | uint64(value)&(1<<width-1)
	for b.held += width; b.held >= 8; b.held -= 8 {
		b.out = append(b.out, byte(b.cache>>(b.held-8)))
	}
}

// code adds a number in the exponential code.
func (b *bitWriter) code(value uint32) {
	width := 0
	for (value+1)>>(width+1) > 0 {
		width++
	}
	b.put(width, 0)
	b.put(width+1, value+1)
}

// signed adds a number that may be negative in the exponential code.
func (b *bitWriter) signed(value int) {
	if value > 0 {
		b.code(uint32(2*value - 1))
	} else {
		b.code(uint32(-2 * value))
	}
}

// luma adds a block of brightness that has one level, its mean.
func (b *bitWriter) luma(level int) {
	switch level {
	case 0:
		b.put(1, 1)
	case 1, -1:
		b.put(2, 0b01)
		b.sign(level)
		b.put(1, 1) // no zeros before it
	default:
		b.put(6, 0b000101)
		b.level(level)
		b.put(1, 1)
	}
}

// chroma adds a block of hue that has one level, the mean of the macroblock,
// which is even.
func (b *bitWriter) chroma(level int) {
	if level == 0 {
		b.put(2, 0b01)
		return
	}
	b.put(6, 0b000111)
	b.level(level)
	b.put(1, 1)
}

// sign adds the sign of a level of 1.
func (b *bitWriter) sign(level int) {
	if level < 0 {
		b.put(1, 1)
	} else {
		b.put(1, 0)
	}
}

// level adds a level that is neither 0 nor 1.
func (b *bitWriter) level(level int) {
	n := 2*level - 4
	if level < 0 {
		n = -2*level - 3
	}
	switch {
	case n < 14:
		b.put(n+1, 1)
	case n < 30:
		b.put(15, 1)
		b.put(4, uint32(n-14))
	default:
		b.put(16, 1)
		b.put(12, uint32(n-30))
	}
}

// end closes the unit and returns it with its type before it and without
// bytes that would look like the start of another one.
func (b *bitWriter) end(kind byte) []byte {
	b.put(1, 1)
	if b.held > 0 {
		b.put(8-b.held, 0)
	}
	out := make([]byte, 1, len(b.out)+len(b.out)/64+16)
	out[0] = kind
	zeros := 0
	for _, c := range b.out {
		if zeros == 2 && c <= 3 {
			out, zeros = append(out, 3), 0
		}
		if out = append(out, c); c == 0 {
			zeros++
		} else {
			zeros = 0
		}
	}
	return out
}
