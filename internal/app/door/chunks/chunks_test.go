package chunks

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// FuzzChunks: where the follower sees the end of a body, net/http sees it too,
// however the bytes come; and a plain body is never given up.
func FuzzChunks(f *testing.F) {
	for _, body := range []string{"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n",
		"a\r\n0123456789\r\nB\r\n01234567890\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"2;x=y\r\n{}\r\n0\r\n\r\n", "02\r\n{}\r\n0\r\n\r\n", "2\n{}\n0\n\n", "2\r\n{}\r\n0\r\nX: y\r\n\r\n", "ffffffffffffffff\r\n",
		"7fffffffffffffff\r\nx",
		"2\r\n{}\r\n0\r\r\n", "2\r\n{}0\r\n\r\n", "2\r\n{}\r\n\r\n", "\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n", "2\r\r\n{}\r\n0\r\n\r\n"} {
		f.Add(body, 3)
	}
	f.Fuzz(func(t *testing.T, body string, step int) {
		var whole Body
		n, ok := whole.Follow([]byte(body))
		if n > len(body) || ok && whole.part != bodyEnded && n != len(body) {
			t.Fatalf("%d bytes of %d: %+v", n, len(body), whole)
		}
		var parts Body
		seen, goesOn := 0, true
		for step = max(step, 1); goesOn && seen < len(body) && parts.part != bodyEnded; {
			var n int
			n, goesOn = parts.Follow([]byte(body[seen:min(seen+step, len(body))]))
			seen += n
		}
		if goesOn != ok || parts != whole || seen != n {
			t.Fatalf("in steps of %d: %t %+v after %d; at once %t %+v after %d", step, goesOn, parts, seen, ok, whole, n)
		}
		from := bufio.NewReader(strings.NewReader("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body))
		r, err := http.ReadRequest(from)
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(r.Body)
		rest, _ := io.ReadAll(from)
		if ok && whole.part == bodyEnded && (err != nil || string(rest) != body[n:]) {
			t.Fatalf("%q: ended after %d, where net/http says %v and leaves %q", body, n, err, rest)
		}
		if ok && whole.part != bodyEnded && err == nil {
			t.Fatalf("%q: net/http sees its end", body)
		}
		var again Body
		plain := inPlainChunks(string(read))
		if n, ok := again.Follow([]byte(plain + "x")); !ok || again.part != bodyEnded || n != len(plain) {
			t.Fatalf("%q is given up after %d bytes", plain, n)
		}
	})
}

// inPlainChunks writes a body as one chunk of each byte and one of the rest.
func inPlainChunks(body string) string {
	var out strings.Builder
	w := func(p string) { out.WriteString(fmt.Sprintf("%X", len(p)) + "\r\n" + p + "\r\n") }
	for ; len(body) > 20; body = body[1:] {
		w(body[:1])
	}
	if body != "" {
		w(body)
	}
	return out.String() + "0\r\n\r\n"
}
