package door

import "testing"

// TestNativeBeforeItIsRead: what cannot be read is of the family that its path
// would be of.
func TestNativeBeforeItIsRead(t *testing.T) {
	t.Parallel()
	for line, native := range map[string]bool{
		"GET /native HTTP/1.1\r\n": true, "GET /native/%zz HTTP/1.1\r\n": true, "GET /native?%zz HTTP/1.1\r\n": true,
		"\r\n\nPOST /native/v1/messages HTTP/3.0\n": true, "GET /native\r\n": true, "GET /native": true, "GET /native/x\r\n": true,
		"GET /nativex HTTP/1.1\r\n": false, "GET /v1/models?x=/native/ HTTP/1.1\r\n": false, "GET /v1 /native/ HTTP/1.1\r\n": false,
		"/native/ HTTP/1.1\r\n": false, "": false, "GET": false,
	} {
		var h head
		h.read([]byte(line))
		if h.native() != native {
			t.Errorf("%q: %t", line, !native)
		}
	}
}
