package drawing

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
)

// player reads a file as a player does, as far as the sandbox's files go: it
// walks the boxes, and decodes the pictures with the arithmetic of the standard
// to samples. What the sandbox does not write it refuses.
type player struct {
	width, height   int // shown
	wide, high      int // macroblocks
	scale, length   uint32
	delta           uint32
	offset          int
	sizes           []uint32
	keys            []uint32
	sequence, set   []byte
	quantizer       int
	picture         plane
	hue             [2]plane
	macroblocksRead int
}

// plane is the samples of one component.
type plane struct {
	stride int
	at     []uint8
}

// boxes walks the boxes of a content.
func boxes(content []byte, each func(kind string, content []byte) error) error {
	for len(content) > 0 {
		if len(content) < 8 {
			return fmt.Errorf("%d bytes after the last box", len(content))
		}
		size := int(binary.BigEndian.Uint32(content))
		if size < 8 || size > len(content) {
			return fmt.Errorf("box %q of %d bytes in %d", content[4:8], size, len(content))
		}
		if err := each(string(content[4:8]), content[8:size]); err != nil {
			return err
		}
		content = content[size:]
	}
	return nil
}

// words32 reads numbers.
func words32(b []byte) []uint32 {
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.BigEndian.Uint32(b[4*i:])
	}
	return out
}

// play decodes a whole file and gives each picture to see.
func play(file []byte, see func(n int, p *player)) (*player, error) {
	p := &player{}
	var order []string
	err := boxes(file, func(kind string, content []byte) error {
		order = append(order, kind)
		if kind == "moov" {
			return p.index(content)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !slices.Equal(order, []string{"ftyp", "moov", "mdat"}) {
		return nil, fmt.Errorf("boxes %v", order)
	}
	if err := p.sequences(); err != nil {
		return nil, err
	}
	at := p.offset
	for i, size := range p.sizes {
		unit := file[at : at+int(size)]
		at += int(size)
		if n := binary.BigEndian.Uint32(unit); n != size-4 {
			return nil, fmt.Errorf("picture %d: a unit of %d bytes in %d", i, n, size)
		}
		if err := p.slice(unit[4:], slices.Contains(p.keys, uint32(i+1))); err != nil {
			return nil, fmt.Errorf("picture %d: %w", i, err)
		}
		if see != nil {
			see(i, p)
		}
	}
	if at != len(file) {
		return nil, fmt.Errorf("%d bytes after the last picture", len(file)-at)
	}
	return p, nil
}

// index reads the boxes of the index.
func (p *player) index(content []byte) error {
	return boxes(content, func(kind string, content []byte) error {
		n := words32(content)
		switch kind {
		case "trak", "mdia", "minf", "stbl":
			return p.index(content)
		case "mvhd":
			p.length = n[4] * 1000 / n[3]
		case "mdhd":
			p.scale = n[3]
		case "stsd":
			p.width, p.height = int(n[10]>>16), int(n[10]&0xFFFF)
			return boxes(content[16+78:], func(kind string, content []byte) error {
				if kind == "avcC" {
					size := int(binary.BigEndian.Uint16(content[6:]))
					p.sequence = content[8 : 8+size]
					p.set = content[8+size+3:]
				}
				return nil
			})
		case "stts":
			if n[1] != 1 {
				return fmt.Errorf("%d spans of time", n[1])
			}
			p.delta = n[3]
		case "stss":
			p.keys = n[2:]
		case "stsz":
			p.sizes = n[3:]
		case "stco":
			p.offset = int(n[2])
		}
		return nil
	})
}

// bitReader reads a unit without the bytes that were put in between.
type bitReader struct {
	data []byte
	at   int
}

func readUnit(unit []byte) *bitReader {
	var out []byte
	for i, c := range unit[1:] {
		if c == 3 && i >= 2 && unit[i] == 0 && unit[i-1] == 0 {
			continue
		}
		out = append(out, c)
	}
	return &bitReader{data: out}
}

func (b *bitReader) u(width int) int {
	n := 0
	for range width {
		n = n<<1 | int(b.data[b.at/8]>>(7-b.at%8)&1)
		b.at++
	}
	return n
}

func (b *bitReader) zeros() int {
	n := 0
	for b.u(1) == 0 {
		n++
	}
	return n
}

func (b *bitReader) ue() int { n := b.zeros(); return 1<<n - 1 + b.u(n) }

func (b *bitReader) se() int {
	if n := b.ue(); n%2 == 1 {
		return (n + 1) / 2
	} else {
		return -n / 2
	}
}

// more tells whether there is more than the closing bit.
func (b *bitReader) more() bool {
	last := len(b.data)*8 - 1
	for b.data[last/8]>>(7-last%8)&1 == 0 {
		last--
	}
	return b.at < last
}

// sequences reads the two units that describe pictures.
func (p *player) sequences() error {
	b := readUnit(p.sequence)
	if p.sequence[0]&31 != 7 || b.u(8) != 66 || b.u(8)&0xC0 != 0xC0 {
		return fmt.Errorf("no constrained baseline: % x", p.sequence)
	}
	b.u(8)
	if id, number, order, refs, gaps := b.ue(), b.ue(), b.ue(), b.ue(), b.u(1); id+number+gaps != 0 || order != 2 || refs != 1 {
		return fmt.Errorf("sequence %d %d %d %d %d", id, number, order, refs, gaps)
	}
	p.wide, p.high = b.ue()+1, b.ue()+1
	if b.u(2) != 3 {
		return fmt.Errorf("fields")
	}
	width, height := 16*p.wide, 16*p.high
	if b.u(1) == 1 {
		width -= 2 * (b.ue() + b.ue())
		height -= 2 * (b.ue() + b.ue())
	}
	if width != p.width || height != p.height {
		return fmt.Errorf("the stream is %dx%d, the file %dx%d", width, height, p.width, p.height)
	}
	if b.u(1) != 1 || b.u(9) != 257 || b.u(7) != 0b0110101 || b.u(24) != 0x010101 || b.u(2) != 1 {
		return fmt.Errorf("how to show it")
	}
	tick, scale := b.u(32), b.u(32)
	if b.u(5) != 0b10001 || uint32(scale)/uint32(2*tick) != p.scale/p.delta {
		return fmt.Errorf("%d/%d pictures a second in the stream, %d/%d in the file", scale, 2*tick, p.scale, p.delta)
	}

	b = readUnit(p.set)
	if p.set[0]&31 != 8 || b.ue()+b.ue()+b.u(2)+b.ue()+b.ue()+b.ue()+b.u(3) != 0 {
		return fmt.Errorf("settings % x", p.set)
	}
	p.quantizer = 26 + b.se()
	if start, chroma := b.se(), b.se(); start != 0 || chroma != 0 || b.u(3) != 4 {
		return fmt.Errorf("settings % x", p.set)
	}
	p.picture = plane{16 * p.wide, make([]uint8, 256*p.wide*p.high)}
	for i := range p.hue {
		p.hue[i] = plane{8 * p.wide, make([]uint8, 64*p.wide*p.high)}
	}
	return nil
}

// slice decodes a picture.
func (p *player) slice(unit []byte, key bool) error {
	if kind := unit[0] & 31; (kind == 5) != key || (kind != 5 && kind != 1) {
		return fmt.Errorf("a unit of type %d, key picture: %v", kind, key)
	}
	b := readUnit(unit)
	if first, kind, set := b.ue(), b.ue(), b.ue(); first != 0 || set != 0 || kind != map[bool]int{true: 7, false: 5}[key] {
		return fmt.Errorf("slice %d %d %d", first, kind, set)
	}
	b.u(4)
	if key {
		b.ue()
		b.u(2)
	} else if b.u(3) != 0 {
		return fmt.Errorf("other references")
	}
	quantizer := p.quantizer + b.se()
	if b.ue() != 1 {
		return fmt.Errorf("edges are filtered")
	}
	p.macroblocksRead = 0
	for at := 0; at < p.wide*p.high; at++ {
		if !key {
			skipped := b.ue() // they keep the samples of the picture before
			if at += skipped; at == p.wide*p.high && !b.more() {
				break
			}
		}
		if at >= p.wide*p.high || !b.more() {
			return fmt.Errorf("the slice ends at macroblock %d", at)
		}
		if err := p.macroblock(b, at%p.wide, at/p.wide, key, quantizer); err != nil {
			return fmt.Errorf("macroblock %d: %w", at, err)
		}
		p.macroblocksRead++
		if !key && !b.more() {
			break
		}
	}
	if b.more() {
		return fmt.Errorf("more data than macroblocks")
	}
	return nil
}

// macroblock decodes one.
func (p *player) macroblock(b *bitReader, x, y int, key bool, quantizer int) error {
	kind := b.ue()
	if !key {
		kind -= 5
	}
	if kind == 0 { // sixteen blocks
		if b.u(16) != 0xFFFF {
			return fmt.Errorf("another guess than the usual one")
		}
	}
	hueGuess := b.ue()
	coded := 0
	switch kind {
	case 0:
		var ok bool
		if coded, ok = map[int]int{1: 31, 2: 15, 3: 0, 16: 16}[b.ue()]; !ok {
			return fmt.Errorf("parts that are coded")
		}
		if coded > 0 {
			quantizer += b.se()
		}
	case 1, 2: // one block, from above or from the left
		if quantizer += b.se(); b.u(1) != 1 {
			return fmt.Errorf("a whole block with levels")
		}
		for dy := range 16 {
			for dx := range 16 {
				var from uint8
				if kind == 1 {
					if y == 0 {
						return fmt.Errorf("nothing above")
					}
					from = p.picture.at[(16*y-1)*p.picture.stride+16*x+dx]
				} else {
					if x == 0 {
						return fmt.Errorf("nothing to the left")
					}
					from = p.picture.at[(16*y+dy)*p.picture.stride+16*x-1]
				}
				p.picture.at[(16*y+dy)*p.picture.stride+16*x+dx] = from
			}
		}
	default:
		return fmt.Errorf("type %d", kind)
	}
	if kind == 0 {
		for i := range 16 {
			level := 0
			if coded&15 == 15 {
				var err error
				if level, err = b.only(map[int]int{1: 0, 2: 1, 6: -1}); err != nil {
					return err
				}
			}
			left, top := 16*x+8*(i/4%2)+4*(i%2), 16*y+8*(i/8)+4*(i/2%2)
			p.block(left, top, level, quantizer)
		}
	}
	for i := range p.hue {
		level := 0
		if coded&16 != 0 {
			var err error
			if level, err = b.only(map[int]int{2: 0, 1: 1, 6: -1}); err != nil {
				return err
			}
		}
		if err := p.hueBlock(i, 8*x, 8*y, hueGuess, level, quantizer); err != nil {
			return err
		}
	}
	return nil
}

// only reads a block that has at most its mean. The codes of how many levels
// there are are told by their lengths: none, one that is 1, one that is not.
func (b *bitReader) only(lengths map[int]int) (int, error) {
	zeros := b.zeros()
	if zeros == 3 {
		if rest := b.u(2); rest != 1 && rest != 3 {
			return 0, fmt.Errorf("more than one level")
		}
		zeros = 5
	}
	count, ok := lengths[zeros+1]
	switch {
	case !ok:
		return 0, fmt.Errorf("more than one level")
	case count == 0:
		return 0, nil
	case count == 1:
		level := 1 - 2*b.u(1)
		if b.u(1) != 1 {
			return 0, fmt.Errorf("a level that is not the mean")
		}
		return level, nil
	}
	prefix := b.zeros()
	code := prefix + 2
	switch {
	case prefix == 14:
		code += b.u(4)
	case prefix == 15:
		code = 30 + 2 + b.u(12)
	case prefix > 15:
		return 0, fmt.Errorf("prefix %d", prefix)
	}
	if b.u(1) != 1 {
		return 0, fmt.Errorf("a level that is not the mean")
	}
	if code%2 == 0 {
		return (code + 2) / 2, nil
	}
	return -(code + 1) / 2, nil
}

// factor is what a mean is multiplied with at a quantizer.
func factor(quantizer int) int {
	return 16 * []int{10, 11, 13, 14, 16, 18}[quantizer%6]
}

// block decodes four by four samples.
func (p *player) block(left, top, level, quantizer int) {
	s := p.picture
	sum, n := 0, 0
	for i := range 4 {
		if left > 0 {
			sum, n = sum+int(s.at[(top+i)*s.stride+left-1]), n+1
		}
		if top > 0 {
			sum, n = sum+int(s.at[(top-1)*s.stride+left+i]), n+1
		}
	}
	guess := 128
	if n > 0 {
		guess = (sum + n/2) / n
	}
	var mean int
	if shift := quantizer / 6; shift >= 4 {
		mean = level * factor(quantizer) << (shift - 4)
	} else {
		mean = (level*factor(quantizer) + 1<<(3-shift)) >> (4 - shift)
	}
	for y := range 4 {
		for x := range 4 {
			s.at[(top+y)*s.stride+left+x] = uint8(min(max(guess+(mean+32)>>6, 0), 255))
		}
	}
}

// hueBlock decodes eight by eight samples of hue.
func (p *player) hueBlock(i, left, top, guess, level, quantizer int) error {
	s := p.hue[i]
	if quantizer > 29 {
		return fmt.Errorf("quantizer %d", quantizer)
	}
	mean := (level * factor(quantizer)) << (quantizer / 6) >> 5
	for y := range 8 {
		for x := range 8 {
			from := 128
			switch {
			case guess == 1 && left > 0:
				from = int(s.at[(top+y)*s.stride+left-1])
			case guess == 2 && top > 0:
				from = int(s.at[(top-1)*s.stride+left+x])
			case guess != 0 || left+top > 0:
				return fmt.Errorf("hue is guessed by %d", guess)
			}
			s.at[(top+y)*s.stride+left+x] = uint8(min(max(from+(mean+32)>>6, 0), 255))
		}
	}
	return nil
}

// TestEncoder writes pictures with every brightness and hue next to every
// other one, changes them, and compares each with what a player sees.
func TestEncoder(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{16, 16}, {64, 48}, {66, 70}, {250, 34}} {
		f := newFrame(size[0], size[1])
		e := &encoder{width: size[0], height: size[1], rate: 25}
		made := &film{width: size[0], height: size[1], rate: 25, sequence: e.sequence(), set: e.set()}
		var want []frame
		width, height := f.size()
		random := uint32(1)
		next := func(n int) int {
			random = random*1664525 + 1013904223
			return int(random>>8) % n
		}
		for n := range 40 {
			for range []int{0, 1, 30, 5000}[n%4] {
				x, y := next(width), next(height)
				switch next(6) {
				case 0:
					f.tint(x, y, uint8(16+next(225)), uint8(16+next(225)))
				case 1: // flat parts, which are guessed
					for i := range 16 * 16 {
						f.set(x/4*4+i%16, y/4*4+i/16, 99)
					}
				default:
					f.set(x, y, uint8(next(256)))
				}
			}
			if n%16 == 0 || n == 17 {
				made.keys = append(made.keys, uint32(n+1))
				made.pictures = append(made.pictures, e.key(f))
			} else {
				made.pictures = append(made.pictures, e.next(f))
			}
			want = append(want, frame{wide: f.wide, high: f.high, bright: slices.Clone(f.bright), blue: slices.Clone(f.blue),
				red: slices.Clone(f.red)})
		}
		_, err := play(made.mp4(), func(n int, p *player) {
			if !sees(p, &want[n]) {
				t.Errorf("%v: picture %d is another one", size, n)
			}
		})
		if err != nil {
			t.Fatalf("%v: %v", size, err)
		}
	}
}

// sees tells whether a player's picture is a frame.
func sees(p *player, f *frame) bool {
	if p.wide != f.wide || p.high != f.high {
		return false
	}
	for i, v := range p.picture.at {
		if x, y := i%p.picture.stride, i/p.picture.stride; v != f.at(x/cellSize, y/cellSize) {
			return false
		}
	}
	for i := range p.hue[0].at {
		x, y := i%p.hue[0].stride/8, i/p.hue[0].stride/8
		if p.hue[0].at[i] != f.blue[y*f.wide+x] || p.hue[1].at[i] != f.red[y*f.wide+x] {
			return false
		}
	}
	return true
}

func TestUnitsHoldNoStartCodes(t *testing.T) {
	t.Parallel()
	var b bitWriter
	b.begin()
	for _, c := range []uint32{0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4} {
		b.put(8, c)
	}
	unit := b.end(unitKey)
	want := []byte{unitKey, 0, 0, 3, 0, 0, 3, 0, 1, 0, 0, 3, 2, 0, 0, 3, 3, 0, 0, 4, 0x80}
	if !slices.Equal(unit, want) {
		t.Errorf("% x, want % x", unit, want)
	}
	if got := readUnit(unit).data; !slices.Equal(got, []byte{0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0x80}) {
		t.Errorf("reads back as % x", got)
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, height int
		want          uint8
	}{{64, 64, 10}, {640, 480, 30}, {1280, 720, 31}, {720, 1280, 31}, {1920, 1080, 40}, {1088, 1088, 40}, {3840, 2160, 51}, {8192, 64, 51}} {
		if got := level((c.width+15)/16, (c.height+15)/16, 25); got != c.want {
			t.Errorf("%dx%d: %d, want %d", c.width, c.height, got, c.want)
		}
	}
}
