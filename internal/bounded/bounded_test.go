package bounded_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"tollgate/internal/bounded"
)

// TestReadSteps checks that steps follow the received bytes and end at the announced length.
func TestReadSteps(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, c := range []struct {
		name                     string
		sent, announced, allowed int64
		asked                    []int64
	}{
		{"small", 60 * kib, 60 * kib, 1 << 30, nil},
		{"announced", 200 * kib, 200 * kib, 1 << 30, []int64{200*kib + 1}},
		{"not announced", 200 * kib, -1, 1 << 30, []int64{512 * kib}},
		{"announced and not sent", 10, 1 << 30, 1 << 30, nil},
		{"long", 3 << 20, 3 << 20, 1 << 30, []int64{512 * kib, 512 * kib, 1 << 20, 1<<20 + 1}},
		{"up to the limit", 600 * kib, -1, 600 * kib, []int64{512 * kib, 88*kib + 1}},
	} {
		var asked []int64
		got, err := bounded.Read(iotest.HalfReader(strings.NewReader(strings.Repeat("x", int(c.sent)))), c.announced, c.allowed,
			func(n int64) error {
				asked = append(asked, n)
				return nil
			})
		if err != nil || int64(len(got)) != c.sent || !slices.Equal(asked, c.asked) {
			t.Errorf("%s: %d bytes, %v, asked for %d; want %d", c.name, len(got), err, asked, c.asked)
		}
	}
}

// TestReadStops checks that Read stops if grow returns an error.
func TestReadStops(t *testing.T) {
	t.Parallel()
	refused := errors.New("no")
	from := strings.NewReader(strings.Repeat("x", 1<<20))
	if _, err := bounded.Read(from, -1, 1<<20, func(int64) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v; want the refusal", err)
	}
	if read := 1<<20 - from.Len(); read > bounded.Small {
		t.Errorf("%d bytes were read", read)
	}
	if _, err := bounded.Read(iotest.ErrReader(io.ErrUnexpectedEOF), 10, 10, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v; want the reader's error", err)
	}
}

// TestReadReturnsACopy checks that the next Read does not change the bytes of the last one.
func TestReadReturnsACopy(t *testing.T) {
	t.Parallel()
	read := func(letter string, size, announced int64) []byte {
		got, err := bounded.Read(strings.NewReader(strings.Repeat(letter, int(size))), announced, 1<<20, func(int64) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, size := range []int64{0, 10, 8 << 10, 20 << 10, bounded.Small, 200 << 10} {
		for _, announced := range []int64{size, -1} {
			mine := read("a", size, announced)
			read("b", size, announced)
			if want := strings.Repeat("a", int(size)); string(mine) != want {
				t.Errorf("%d bytes, announced as %d: changed by the next one", size, announced)
			}
		}
	}
}
