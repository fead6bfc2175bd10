package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/upstream/http1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standard returns a transport of net/http with all limits.
func standard() *http.Transport {
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 5 * time.Second,
		ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10, ReadBufferSize: 4 << 10,
	}
}

// own returns a transport under test.
func own(t testing.TB, adjust ...func(*http.Transport)) *http1.Transport {
	s := standard()
	for _, f := range adjust {
		f(s)
	}
	transport := http1.New(s)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// rawServer is a server on raw connections. Each connection is closed after serve returns.
type rawServer struct {
	address string
	conns   atomic.Int64 // accepted connections
}

func newRawServer(t testing.TB, serve func(c net.Conn, in *bufio.Reader)) *rawServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{address: "http://" + l.Addr().String()}
	var running sync.WaitGroup
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			mu.Lock()
			open[c] = true
			mu.Unlock()
			running.Go(func() {
				defer c.Close()
				serve(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return s
}

// readRequest reads a whole request.
func readRequest(in *bufio.Reader) (*http.Request, string, error) {
	req, err := http.ReadRequest(in)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(req.Body)
	return req, string(body), err
}

// reply answers each request of a connection with a text.
func reply(text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := readRequest(in); err != nil {
				return
			}
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// once answers one request of a connection with a text and then closes it.
func once(text string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, in *bufio.Reader) {
		if _, _, err := readRequest(in); err == nil {
			_, _ = io.WriteString(c, text) // the client may be gone
		}
	}
}

// result is the outcome of one request for its caller.
type result struct {
	status  int
	body    string
	trailer string
	failed  bool // no response
	broken  bool // the response's body ends with an error
}

// call sends a request with a body of n bytes and reads the response.
func call(t testing.TB, transport http.RoundTripper, address string, n int) result {
	t.Helper()
	body := strings.Repeat("x", n)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v1/x?y=1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["User-Agent"] = []string{"test"}
	req.Header["idempotency-key"] = []string{"key"}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return result{failed: true}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return result{status: resp.StatusCode, body: string(got), trailer: resp.Trailer.Get("Sum"), broken: err != nil}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood"

// odd are servers with unusual or wrong behaviour.
var odd = []struct {
	name  string
	serve func(c net.Conn, in *bufio.Reader)
}{
	{"plain", reply(ok)},
	{"chunks", reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ngo\r\n2;name=value\r\nod\r\n0\r\n\r\n")},
	{"trailers", reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Sum\r\n\r\n4\r\ngood\r\n0\r\nSum: 7\r\n\r\n")},
	{"no body", reply("HTTP/1.1 204 No Content\r\n\r\n")},
	{"empty body", reply("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")},
	{"until the end", once("HTTP/1.1 200 OK\r\n\r\ngood")},
	{"HTTP/1.0", once("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ngood")},
	{"HTTP/1.0 kept", reply("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 4\r\n\r\ngood")},
	{"said to close", reply("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ngood")},
	{"closes unsaid", once(ok)},
	{"1xx", reply("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok)},
	{"many 1xx", reply(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 9) + ok)},
	{"short body", once("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ngood")},
	{"long body", reply("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood, and more")},
	{"cut chunk", once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ngood")},
	{"cut between chunks", once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n")},
	{"bad chunk size", once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\ngood\r\n")},
	{"bad chunk end", once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngoodbad\r\n0\r\n\r\n")},
	{"two lengths", once("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ngood!")},
	{"bad length", once("HTTP/1.1 200 OK\r\nContent-Length: four\r\n\r\ngood")},
	{"unknown encoding", once("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\ngood")},
	{"cut head", once("HTTP/1.1 200 OK\r\nContent-Le")},
	{"no answer", func(_ net.Conn, in *bufio.Reader) { _, _, _ = readRequest(in) }},
	{"closes at once", func(net.Conn, *bufio.Reader) {}},
	{"no HTTP", once("220 mail.example.com ESMTP\r\n")},
	{"bad status", once("HTTP/1.1 two hundred\r\n\r\n")},
	{"bad header", once("HTTP/1.1 200 OK\r\nno colon\r\n\r\n")},
	{"long head", once("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n")},
	{"slow head", func(c net.Conn, in *bufio.Reader) {
		if _, _, err := readRequest(in); err == nil {
			for i := range len(ok) {
				_, _ = io.WriteString(c, ok[i:i+1]) // each byte is a packet of its own
			}
		}
	}},
	{"closes one half unsaid", func(c net.Conn, in *bufio.Reader) {
		if _, _, err := readRequest(in); err == nil {
			_, _ = io.WriteString(c, ok)      // the client may be gone
			_ = c.(*net.TCPConn).CloseWrite() // an error shows at the client
			_, _ = io.Copy(io.Discard, in)    // until the client closes, too
		}
	}},
	{"answers early", func(c net.Conn, in *bufio.Reader) { // and does not read the body
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nmore")
			_, _ = io.Copy(io.Discard, in) // a reset would lose the answer
		}
	}},
}

// TestOddServers compares the outcomes of both transports and their numbers of connections, for short
// and long bodies.
func TestOddServers(t *testing.T) {
	t.Parallel()
	for _, tt := range odd {
		for _, size := range []int{0, 100, 2 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes", tt.name, size), func(t *testing.T) {
				t.Parallel()
				net1, net2 := newRawServer(t, tt.serve), newRawServer(t, tt.serve)
				usual := standard()
				t.Cleanup(usual.CloseIdleConnections)
				transport := own(t)
				calls := 3
				if strings.HasSuffix(tt.name, " unsaid") {
					calls = 1 // whether the client knows of it before the next call is a matter of luck
				}
				for i := range calls {
					want, got := call(t, usual, net1.address, size), call(t, transport, net2.address, size)
					if got != want {
						t.Errorf("call %d: %+v, want %+v", i, got, want)
					}
				}
				if got, want := net2.conns.Load(), net1.conns.Load(); got != want {
					t.Errorf("%d connections, want %d", got, want)
				}
			})
		}
	}
}

// TestUnaskedUpgrade checks that an upgrade without a request for it is a failure.
func TestUnaskedUpgrade(t *testing.T) {
	t.Parallel()
	server := newRawServer(t, reply("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))
	if got := call(t, own(t), server.address, 10); !got.failed {
		t.Errorf("%+v, want a failure", got)
	}
}

// TestRequests compares the requests of both transports as the server reads them.
func TestRequests(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 100, 40_000, 2 << 20} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			t.Run(fmt.Sprintf("%s %d", method, size), func(t *testing.T) {
				t.Parallel()
				seen := make(chan string, 8)
				server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
					for {
						req, body, err := readRequest(in)
						if err != nil {
							return
						}
						seen <- fmt.Sprint(req.Method, req.RequestURI, req.Host, req.Header, req.ContentLength, len(body), req.Close)
						_, _ = io.WriteString(c, ok) // the client reports an error
					}
				})
				usual := standard()
				t.Cleanup(usual.CloseIdleConnections)
				for _, transport := range []http.RoundTripper{usual, own(t)} {
					req, err := http.NewRequestWithContext(t.Context(), method, server.address+"/a%2Fb/ü?q=1&r=%20",
						bytes.NewReader(make([]byte, size)))
					if err != nil {
						t.Fatal(err)
					}
					req.Header = http.Header{"User-Agent": {"test"}, "B": {"1", "2"}, "a": {"\tspaced "}, "Empty": {""}}
					resp, err := transport.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
				if want, got := <-seen, <-seen; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

// TestStaleConnection checks that no request is sent on a connection after the server has closed it or
// has sent something unasked.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"closed": "", "a late byte": "x", "a whole response": ok} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{}, 8)
			server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
				if _, _, err := readRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(c, ok) // the client reports an error
				if after != "" {
					<-done // the client has read the response
					_, _ = io.WriteString(c, after)
					done <- struct{}{}
					_, _ = io.Copy(io.Discard, in) // until the client closes
				}
			})
			dialed := make(chan net.Conn, 8)
			transport := own(t, func(s *http.Transport) {
				dial := s.DialContext
				s.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					c, err := dial(ctx, network, address)
					dialed <- c
					return c, err
				}
			})
			for i := range 2 {
				if got := call(t, transport, server.address, 10); got.body != "good" {
					t.Fatalf("call %d: %+v", i, got)
				}
				c := <-dialed
				if after != "" {
					done <- struct{}{}
					<-done
				} else if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) { // waits for the end
					t.Fatalf("%d bytes, %v", n, err)
				}
			}
			if got := server.conns.Load(); got != 2 {
				t.Errorf("%d connections, want 2", got)
			}
		})
	}
}

// TestCancel ends the context at every step of a request: the request ends.
func TestCancel(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	tests := map[string]struct {
		size  int
		start string // of the response
	}{
		"before it is sent":         {0, ""},
		"before the response":       {10, ""},
		"while the body is written": {64 << 20, ""},
		"in the head":               {10, "HTTP/1.1 200 OK\r\nContent"},
		"in the body":               {10, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ngood"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			if tt.size == 0 {
				cancel(cause)
			}
			server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				_, _ = io.WriteString(c, tt.start) // the client reports an error
				if !strings.Contains(tt.start, "\r\n\r\n") {
					cancel(cause)
				}
				_, _ = io.Copy(io.Discard, in) // until the client closes
			})
			transport := own(t)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.address, bytes.NewReader(make([]byte, tt.size)))
			if err != nil {
				t.Fatal(err)
			}
			req.Header["User-Agent"] = []string{"test"}
			resp, err := transport.RoundTrip(req)
			if err == nil {
				cancel(cause)
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			} else if !errors.Is(err, cause) {
				t.Errorf("error %v, want the context's cause", err)
			}
			if err == nil {
				t.Error("the request did not fail")
			}
			transport.CloseIdleConnections()
		})
	}
}

// TestUnreadBody closes responses before their end: their connections are closed.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 8)
	server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
		if _, _, err := readRequest(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ngood") // the client reports an error
		_, _ = io.Copy(io.Discard, in)                                               // until the client closes
		closed <- struct{}{}
	})
	transport := own(t)
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header["User-Agent"] = []string{"test"}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		<-closed
	}
}

// failingBody fails after some bytes.
type failingBody struct {
	rest int
	err  error
}

func (b *failingBody) Read(p []byte) (int, error) {
	if b.rest == 0 {
		return 0, b.err
	}
	n := min(len(p), b.rest)
	b.rest -= n
	return n, nil
}

func (b *failingBody) Close() error { return nil }

// TestFailingBody sends bodies with an error or an early end: the request fails with the body's error,
// and the server does not read a whole request.
func TestFailingBody(t *testing.T) {
	t.Parallel()
	broken := errors.New("the file is gone")
	for _, length := range []int64{100, 1 << 20} {
		for _, bodyErr := range []error{broken, io.EOF} {
			whole := make(chan bool, 8)
			server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
				_, _, err := readRequest(in)
				whole <- err == nil
			})
			transport := own(t)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.address, &failingBody{int(length) - 1, bodyErr})
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = length
			req.Header["User-Agent"] = []string{"test"}
			_, err = transport.RoundTrip(req) //nolint:bodyclose // there is no response
			if err == nil || errors.Is(bodyErr, broken) && !errors.Is(err, broken) {
				t.Errorf("%d bytes, %v: error %v", length, bodyErr, err)
			}
			if <-whole {
				t.Errorf("%d bytes, %v: the server read a whole request", length, bodyErr)
			}
		}
	}
}

// TestIdleConnections checks the size of the pool and the time limit of idle connections.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	release, arrived := make(chan struct{}), make(chan struct{}, 64)
	var open atomic.Int64
	closed := make(chan struct{}, 64)
	server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
		open.Add(1)
		defer func() { open.Add(-1); closed <- struct{}{} }()
		for {
			if _, _, err := readRequest(in); err != nil {
				return
			}
			arrived <- struct{}{}
			<-release
			_, _ = io.WriteString(c, ok) // the client reports an error
		}
	})
	transport := own(t, func(s *http.Transport) { s.MaxIdleConnsPerHost, s.IdleConnTimeout = 3, 40*time.Millisecond })
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { call(t, transport, server.address, 1) })
	}
	for range 8 {
		<-arrived
	}
	close(release)
	calls.Wait()
	for range 8 { // 5 at once, because the pool is full, and 3 when they have been idle for too long
		<-closed
	}
	if got := call(t, transport, server.address, 1); got.body != "good" || server.conns.Load() != 9 {
		t.Errorf("%+v, %d connections, want 9", got, server.conns.Load())
	}
}

// TestReuse checks that consecutive requests share one connection, and that concurrent callers get their
// own responses.
func TestReuse(t *testing.T) {
	t.Parallel()
	server := newRawServer(t, func(c net.Conn, in *bufio.Reader) {
		for {
			_, body, err := readRequest(in)
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		}
	})
	transport := own(t)
	for n := range 20 {
		if got := call(t, transport, server.address, n+1); len(got.body) != n+1 {
			t.Fatalf("%+v", got)
		}
	}
	if got := server.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
	var calls sync.WaitGroup
	for n := range 16 {
		calls.Go(func() {
			for range 50 {
				if got := call(t, transport, server.address, 1000*n+1); len(got.body) != 1000*n+1 {
					t.Errorf("%d bytes, want %d", len(got.body), 1000*n+1)
				}
			}
		})
	}
	calls.Wait()
}

// FuzzResponse compares the outcomes of both transports for any response.
func FuzzResponse(f *testing.F) {
	for _, text := range []string{ok, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n", "HTTP/1.0 200\r\n\r\nx",
		"HTTP/1.1 100 Continue\r\n\r\n" + ok, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", ok + ok} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		server := newRawServer(t, once(string(text)))
		usual := standard()
		t.Cleanup(usual.CloseIdleConnections)
		if want, got := call(t, usual, server.address, 10), call(t, own(t), server.address, 10); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	})
}
