package sound

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// readTestdata returns the file of testdata with a name. The files are tones of 2.5 s.
func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wavFile returns a WAV of 16-bit samples: its header says length bytes, and size bytes follow.
func wavFile(samples uint32, channels uint16, length uint32, size int) []byte {
	out := append([]byte("RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00\x01\x00"), byte(channels), 0)
	out = binary.LittleEndian.AppendUint32(out, samples)
	out = binary.LittleEndian.AppendUint32(out, 1<<31) // a lie that decoders ignore
	out = append(out, byte(2*channels), 0, 16, 0)
	out = binary.LittleEndian.AppendUint32(append(out, "data"...), length)
	return append(out, make([]byte, size)...)
}

func durationOf(data []byte) (time.Duration, bool) {
	return Duration(bytes.NewReader(data), int64(len(data)))
}

// TestDuration compares the durations of files with those of a decoder.
func TestDuration(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	id3 := func(data []byte) []byte {
		return append(append([]byte("ID3\x04\x00\x00\x00\x00\x02\x00"), make([]byte, 256)...), data...)
	}
	opus, vorbis := readTestdata(t, "opus.ogg"), readTestdata(t, "vorbis.ogg")
	for _, c := range []struct {
		name string
		data []byte
		want time.Duration
	}{
		{"xing.mp3", readTestdata(t, "xing.mp3"), 2664 * ms}, // with the padding of the encoder
		{"xing.mp3 with a tag", id3(readTestdata(t, "xing.mp3")), 2664 * ms},
		{"constant.mp3", readTestdata(t, "constant.mp3"), 2664 * ms},
		{"constant.mp3 with tags", append(id3(readTestdata(t, "constant.mp3")), "TAG"+strings.Repeat("x", 125)...), 2664 * ms},
		{"opus.ogg", opus, 2500 * ms},
		{"vorbis.ogg", vorbis, 2500 * ms},
		{"two streams, one after the other", slices.Concat(opus, vorbis), 5000 * ms},
		{"whole.m4a", readTestdata(t, "whole.m4a"), 2628 * ms}, // with the padding of the encoder
		{"fragments.mp4", readTestdata(t, "fragments.mp4"), 2628 * ms},
		{"whole.webm", readTestdata(t, "whole.webm"), 2508 * ms},
		{"live.webm", readTestdata(t, "live.webm"), 2501 * ms}, // the last block begins here
		{"silence.flac", readTestdata(t, "silence.flac"), 2500 * ms},
		{"adpcm.wav", readTestdata(t, "adpcm.wav"), 500 * ms},
		{"a WAV", wavFile(8000, 2, 48_000, 48_000), 1500 * ms},
		{"a WAV of a pipe", wavFile(8000, 1, 0xffffffff, 16_000), 1000 * ms},
	} {
		got, ok := durationOf(c.data)
		if !ok || got < c.want-40*ms || got > c.want+40*ms {
			t.Errorf("%s: got %s, %t, want %s", c.name, got, ok, c.want)
		}
	}
}

// TestDurationOfLies checks that headers cannot make a file shorter or longer than its bytes allow.
func TestDurationOfLies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	long := bytes.Repeat([]byte{0}, size)
	xing := readTestdata(t, "xing.mp3")
	count := bytes.Index(xing, []byte("Info")) + 8
	withFrames := func(frames uint32, extra []byte) []byte {
		lie := bytes.Clone(xing)
		binary.BigEndian.PutUint32(lie[count:], frames)
		return append(lie, extra...)
	}
	flac := readTestdata(t, "silence.flac")
	withSamples := func(samples byte, extra []byte) []byte {
		lie := bytes.Clone(flac)
		copy(lie[22:], []byte{samples, 0, 0, 1})
		return append(lie, extra...)
	}
	m4a := readTestdata(t, "whole.m4a")
	withTicks := func(n uint32, extra []byte) []byte {
		lie := bytes.Clone(m4a)
		for _, name := range []string{"mvhd", "mdhd"} { // the duration follows version, times and ticks per second
			binary.BigEndian.PutUint32(lie[bytes.Index(lie, []byte(name))+20:], n)
		}
		return append(lie, extra...)
	}
	opus := readTestdata(t, "opus.ogg")
	withPosition := func(n uint64, extra []byte) []byte {
		lie := bytes.Clone(opus)
		for at := 0; at < len(lie); at++ {
			if bytes.HasPrefix(lie[at:], []byte("OggS")) {
				binary.LittleEndian.PutUint64(lie[at+6:], n)
			}
		}
		return append(lie, extra...)
	}
	webm := readTestdata(t, "whole.webm")
	withMilliseconds := func(n float64, extra []byte) []byte {
		lie := bytes.Clone(webm)
		binary.BigEndian.PutUint64(lie[bytes.Index(lie, []byte("\x44\x89\x88"))+3:], math.Float64bits(n))
		return append(lie, extra...)
	}
	atHighest := func(data []byte) time.Duration { return time.Duration(len(data)+size) * 8 * time.Second / maxBitRate }
	for _, c := range []struct {
		name string
		data []byte
		want time.Duration
	}{
		{"an M4A that says it is short", withTicks(1, long), atHighest(m4a)},
		{"an M4A that says it is long", withTicks(math.MaxUint32-1, nil), Longest(int64(len(m4a)))},
		{"an Ogg that says it is short", withPosition(480, long), atHighest(opus)},
		{"an Ogg that says it is long", withPosition(math.MaxInt64-1, nil), Longest(int64(len(opus)))},
		{"a WebM that says it is short", withMilliseconds(1, long), atHighest(webm)},
		{"a WebM that says it is long", withMilliseconds(1e300, nil), Longest(int64(len(webm)))},
		{"a WAV that says it is short", wavFile(8000, 1, 16, 16_000), time.Second},
		{"an MP3 that says it is short", withFrames(1, long), time.Duration(len(xing)+size) * 8 * time.Second / maxMP3BitRate},
		{"an MP3 that says it is long", withFrames(1<<31, nil), Longest(int64(len(xing)))},
		{"a FLAC that says it is short", withSamples(0, long), atHighest(flac)},
		{"a FLAC that says it is long", withSamples(0xff, nil), Longest(int64(len(flac)))},
	} {
		got, ok := durationOf(c.data)
		if diff := got - c.want; !ok || diff < -time.Millisecond || diff > time.Millisecond {
			t.Errorf("%s: got %s, %t, want %s", c.name, got, ok, c.want)
		}
	}
}

// TestDurationUnknown checks that a file without a readable duration has none.
func TestDurationUnknown(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"nothing":              nil,
		"a text":               []byte(strings.Repeat("no sound ", 100)),
		"a WAV without a rate": wavFile(0, 1, 16, 16),
		"a WAV without data":   wavFile(8000, 1, 0, 0)[:36],
		"an Ogg of video":      append([]byte("OggS\x00\x02"), make([]byte, 100)...),
		"an MP4 without moov":  []byte("\x00\x00\x00\x0cftypisom\x00\x00\x00\x00mdat"),
		"a WebM without Info":  []byte("\x1aE\xdf\xa3\x80"),
		"one frame of MP3":     {0xff, 0xfb, 0x90, 0x00},
	} {
		if got, ok := durationOf(data); ok {
			t.Errorf("%s: got %s, want no duration", name, got)
		}
	}
}

// failingReader fails at every read.
type failingReader struct{}

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, errors.New("broken disk") }

// TestDurationOfAnUnreadableFile checks that an error of the reader gives no duration.
func TestDurationOfAnUnreadableFile(t *testing.T) {
	t.Parallel()
	if got, ok := Duration(failingReader{}, 1000); ok {
		t.Errorf("got %s, want no duration", got)
	}
}

// TestStepsAreBounded checks that a file of tiny boxes ends the search.
func TestStepsAreBounded(t *testing.T) {
	t.Parallel()
	head := []byte("\x00\x00\x00\x0cftypisom")
	f := &file{from: bytes.NewReader(append(head, bytes.Repeat([]byte("\x00\x00\x00\x08free"), maxSteps)...))}
	f.size = int64(len(head) + 8*maxSteps)
	if s := f.mp4(); s.duration != 0 || !errors.Is(f.err, errSteps) {
		t.Errorf("got %s, %v, want an end because of too many steps", s.duration, f.err)
	}
}

// FuzzDuration checks that no file gives a duration beyond what its bytes allow.
func FuzzDuration(f *testing.F) {
	names, err := filepath.Glob("testdata/*.*")
	if err != nil || len(names) == 0 {
		f.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		f.Add(readTestdata(f, filepath.Base(name)))
	}
	f.Add(wavFile(8000, 2, 100, 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, ok := durationOf(data)
		if longest := Longest(int64(len(data))); d < 0 || d > longest || ok != (d > 0) {
			t.Errorf("got %s, %t, want at most %s", d, ok, longest)
		}
	})
}
