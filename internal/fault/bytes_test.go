package fault

import "testing"

// TestBytes checks that Bytes uses the largest unit that divides the number.
func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 bytes", 1000: "1000 bytes", 1024: "1 KiB", 1536: "1536 bytes", 32 << 20: "32 MiB", 1 << 30: "1 GiB", 5 << 40: "5120 GiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}
