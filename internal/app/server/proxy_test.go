package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
)

// smuggled are bytes hidden in a request. If a server takes them for a request, they
// swallow the head or the body of the next client's request, or the next client gets their
// response.
var smuggled = []string{
	"GET /attacker/hidden HTTP/1.1\r\nHost: x\r\nX-Client: attacker\r\nX-Ignore: ",
	"POST /attacker/hidden HTTP/1.1\r\nHost: x\r\nX-Client: attacker\r\nContent-Length: 30\r\n\r\nattacker",
	"GET /attacker/hidden HTTP/1.1\r\nHost: x\r\nX-Client: attacker\r\n\r\n",
}

// attacks returns requests by name. Two servers might see their ends in different places.
func attacks() map[string]string {
	list := make(map[string]string)
	add := func(name, version, fields, body string) {
		list[name] = "POST /attacker HTTP/" + version + "\r\nHost: x\r\nX-Client: attacker\r\n" + fields + "\r\n\r\n" + body
	}
	for i, hidden := range smuggled {
		length := func(body string) string { return "Content-Length: " + strconv.Itoa(len(body)) }
		chunk := func(data string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(data), data) }
		n := strconv.Itoa(i)
		last := "0\r\n\r\n" + hidden
		inside := chunk(hidden) + "0\r\n\r\n"
		first := length(inside[:strings.IndexByte(inside, '\n')+1])
		for _, field := range []string{
			"Transfer-Encoding: chunked", "transfer-encoding: Chunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding: chunked ",
			"Transfer-Encoding : chunked", " Transfer-Encoding: chunked", "Transfer-Encoding:\r\n chunked", "Transfer-Encoding: xchunked",
			"Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: \"chunked\"",
			"Transfer-Encoding: \x0bchunked", "Transfer-Encoding: chunked\x00", "Transfer_Encoding: chunked", "X: y\nTransfer-Encoding: chunked",
			"X: y\rTransfer-Encoding: chunked", "X: y\r\n\tTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
			"Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
			"Connection: Content-Length\r\nTransfer-Encoding: chunked",
		} {
			for _, version := range []string{"1.0\r\nConnection: keep-alive", "1.1"} {
				name := fmt.Sprintf("%q %.3s %s", field, version, n)
				add("Content-Length first, "+name, version, length(last)+"\r\n"+field, last)
				add("Transfer-Encoding first, "+name, version, field+"\r\n"+first, inside)
				add("no Content-Length, "+name, version, field, last)
			}
		}
		const chunked = "Transfer-Encoding: chunked"
		for _, body := range []string{
			"2;a=b\r\n{}\r\n" + last,
			"2;a=\"\r\n\"\r\n{}\r\n" + last, "2;\n{}\r\n" + last, "2;a\r{}\r\n" + last, "2 \r\n{}\r\n" + last, "0x2\r\n{}\r\n" + last,
			"+2\r\n{}\r\n" + last, "-2\r\n{}\r\n" + last, "02\r\n{}\r\n" + last, "10000000000000002\r\n{}\r\n" + last, "2\n{}\n" + last,
			"2\r\n{}\n" + last, "2\r\n{}" + last, "2\r\n{}\r\n0\n\n" + hidden, "2\r\n{}\r\n0;a=b\r\n\r\n" + hidden, "2\r\n{}\r\n00\r\n\r\n" + hidden,
			"2\r\n{}\r\n0\r\nX: y\r\n\r\n" + hidden,
			"2\r\n{}\r\n0\r\nContent-Length: 300\r\n\r\n" + hidden, "2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden,
			"2\r\n{}\r\n0\r\n" + hidden, "2\r\n{}\r\n" + hidden, "\r\n" + last, inside, chunk(hidden) + hidden,
		} {
			add(fmt.Sprintf("chunks %q", body), "1.1", chunked, body)
		}
		for _, fields := range []string{
			"Content-Length: 0\r\n" + length(hidden), length(hidden) + "\r\nContent-Length: 0", length(hidden) + "\r\n" + length(hidden),
			"Content-Length: 0, " + strconv.Itoa(len(hidden)), "Content-Length: +" + strconv.Itoa(len(hidden)), "Content-Length: 0x10",
			"Content-Length : " + strconv.Itoa(len(hidden)), "Content-Length:\r\n " + strconv.Itoa(len(hidden)), "X: y\n" + length(hidden),
			"X: y\r" + length(hidden), "Content-Length: -1", "Content-Length: 18446744073709551617", "Content-Length:",
			"Expect: 100-continue\r\n" + length(hidden), "Expect: 100-continue\r\nContent-Length: 4000", "Expect: wonders\r\n" + length(hidden),
			"Expect: 100-continue\r\nContent-Length: 0", "Upgrade: h2c\r\nConnection: Upgrade\r\n" + length(hidden), length(hidden), "X: y",
		} {
			add(fmt.Sprintf("lengths %q %s", fields, n), "1.1", fields, hidden)
		}
		list["bare line feeds "+n] = "POST /attacker HTTP/1.1\nHost: x\nX-Client: attacker\nContent-Length: 0\n\n" + hidden
		list["bare line feeds in chunks "+n] =
			"POST /attacker HTTP/1.1\nHost: x\nX-Client: attacker\nTransfer-Encoding: chunked\n\n0\n\n" + hidden
		list["GET with a body "+n] = "GET /attacker HTTP/1.1\r\nHost: x\r\nX-Client: attacker\r\n" + length(hidden) + "\r\n\r\n" + hidden
		list["HEAD with a body "+n] = "HEAD /attacker HTTP/1.1\r\nHost: x\r\nX-Client: attacker\r\n" + length(hidden) + "\r\n\r\n" + hidden
		list["GET with chunks "+n] = "GET /attacker HTTP/1.1\r\nHost: x\r\nX-Client: attacker\r\n" + chunked + "\r\n\r\n" + last
	}
	return list
}

// recorder answers with the client, path and body of a request and records requests
// with bytes of two clients.
type recorder struct {
	mu    sync.Mutex
	mixed []string
}

// ServeHTTP implements http.Handler.
func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	all := fmt.Sprintf("%s %v %v %q", r.URL, r.Header, r.Trailer, body)
	if strings.Contains(all, "attacker") && strings.Contains(all, "victim") {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.mixed = append(rec.mixed, all)
	}
	fmt.Fprintf(w, "%s %s %s", r.Header.Get("X-Client"), r.URL.Path, body)
}

// take returns the mixed requests and forgets them.
func (rec *recorder) take() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	mixed := rec.mixed
	rec.mixed = nil
	return mixed
}

// attack sends an attack and then requests of victims over other connections. It returns
// every byte that reached the wrong client.
func (rec *recorder) attack(t *testing.T, dial func() net.Conn, request string) (leaks []string) {
	t.Helper()
	attacker := dial()
	_, _ = io.WriteString(attacker, request)
	var answers bytes.Buffer
	answered, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		first := make([]byte, 1)
		n, _ := attacker.Read(first)
		answers.Write(first[:n])
		close(answered)
		_, _ = io.Copy(&answers, attacker)
	}()
	select {
	case <-answered:
	case <-time.After(50 * time.Millisecond): // the request is not complete
	}
	for i := range 2 {
		victim := dial()
		secret := fmt.Sprintf("victim-secret-%d", i)
		fmt.Fprintf(victim, "POST /victim HTTP/1.1\r\nHost: x\r\nX-Client: victim\r\nContent-Length: %d\r\n\r\n%s", len(secret), secret)
		response, err := http.ReadResponse(bufio.NewReader(victim), nil)
		if err != nil {
			leaks = append(leaks, fmt.Sprintf("victim %d: %v", i, err))
		} else {
			body, err := io.ReadAll(response.Body)
			if want := "victim /victim " + secret; string(body) != want {
				leaks = append(leaks, fmt.Sprintf("victim %d: %d %q %v", i, response.StatusCode, body, err))
			}
			response.Body.Close()
		}
		victim.Close()
	}
	attacker.Close()
	<-closed
	if bytes.Contains(answers.Bytes(), []byte("victim")) {
		leaks = append(leaks, "attacker: "+answers.String())
	}
	return append(leaks, rec.take()...)
}

// TestNoRequestSmuggling attacks the server directly, through nginx, Caddy and HAProxy, and
// through two careless proxies. No byte of one client's request may reach another client.
func TestNoRequestSmuggling(t *testing.T) {
	t.Parallel()
	for name, start := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := new(recorder)
			s, _ := startServer(t, Options{}, rec)
			dial := start(t, s.Address())
			for attack, request := range attacks() {
				if leaks := rec.attack(t, dial, request); leaks != nil {
					t.Errorf("%s: %q", attack, leaks)
				}
			}
		})
	}
}

// TestCarelessProxiesSmuggle checks that the attacks work on net/http without this package, so that
// TestNoRequestSmuggling can fail. An attack is repeated, because a leak needs the proxy to use one
// connection again, and on a busy machine the proxy may open another connection.
func TestCarelessProxiesSmuggle(t *testing.T) {
	t.Parallel()
	for want, chunked := range map[string]func(head string) bool{
		`Content-Length first, "Transfer-Encoding: chunked" 1.1`:    lengthFirst,
		`Transfer-Encoding first, "Transfer-Encoding: chunked" 1.0`: chunkedField.MatchString,
	} {
		rec := new(recorder)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		plain := &http.Server{Handler: rec, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
		go func() { _ = plain.Serve(listener) }()
		t.Cleanup(func() { plain.Close() })
		dial := startCareless(t, listener.Addr().String(), 10*time.Second, chunked)
		for attack, request := range attacks() {
			if !strings.HasPrefix(attack, want) {
				continue
			}
			leaked := false
			for tries := 0; tries < 20 && !leaked; tries++ {
				leaked = rec.attack(t, dial, request) != nil
			}
			if !leaked {
				t.Errorf("%s: nothing leaked", attack)
			}
		}
	}
}

// proxies start proxies in front of a server. They return functions to connect to them.
var proxies = map[string]func(t *testing.T, server string) func() net.Conn{
	"no proxy": func(t *testing.T, server string) func() net.Conn {
		return dialer(t, "tcp", server)
	},
	"nginx": func(t *testing.T, server string) func() net.Conn {
		return startProxy(t, "nginx", `daemon off; worker_processes 1; pid %[1]s/pid; error_log stderr crit; events {}
			http { access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
			uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi; upstream gateway { server %[2]s; keepalive 1; }
			server { listen unix:%[1]s/socket; ignore_invalid_headers off; underscores_in_headers on; location / { proxy_pass http://gateway;
			proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; } } }`, server, "-p", ".", "-c")
	},
	"caddy": func(t *testing.T, server string) func() net.Conn {
		return startProxy(t, "caddy", "{\nadmin off\nauto_https off\n}\nhttp:// {\nbind unix/%[1]s/socket\n"+
			"reverse_proxy %[2]s {\ntransport http {\nkeepalive_idle_conns_per_host 1\n}\n}\n}\n",
			server, "run", "--adapter", "caddyfile", "--config")
	},
	"haproxy": func(t *testing.T, server string) func() net.Conn {
		return startProxy(t, "haproxy", "global\nnbthread 1\ndefaults\nmode http\ntimeout connect 10s\ntimeout client 10s\ntimeout server 10s\n"+
			"http-reuse always\noption accept-invalid-http-request\nfrontend clients\nbind unix@%[1]s/socket\ndefault_backend gateway\n"+
			"backend gateway\nserver gateway %[2]s\n", server, "-db", "-f")
	},
	"careless about Content-Length": func(t *testing.T, server string) func() net.Conn {
		return startCareless(t, server, 50*time.Millisecond, lengthFirst)
	},
	"careless about Transfer-Encoding": func(t *testing.T, server string) func() net.Conn {
		return startCareless(t, server, 50*time.Millisecond, chunkedField.MatchString)
	},
}

// chunkedField matches the head of a chunked body, as lenient proxies read it.
var chunkedField = regexp.MustCompile(`(?im)^transfer-encoding[ \t]*:.*(\n[ \t].*)?chunked`)

// lengthFirst reports whether a body is chunked for a proxy that prefers Content-Length.
func lengthFirst(head string) bool {
	return chunkedField.MatchString(head) && !strings.Contains(head, "Content-Length:")
}

// dialer returns a function to connect to an address for at most ten seconds.
func dialer(t *testing.T, network, address string) func() net.Conn {
	return func() net.Conn {
		c, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
}

// startProxy starts a proxy with a configuration. Its placeholders are a folder and the
// server's address. The last argument of the proxy is the configuration file.
func startProxy(t *testing.T, program, config, server string, args ...string) func() net.Conn {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if slices.Contains(strings.Fields(os.Getenv("TOLLGATE_TEST_ABSENT")), program) {
			return dialer(t, "tcp", server)
		}
		t.Fatalf("%v: scripts/preflight installs it", err)
	}
	dir, err := os.MkdirTemp("", "proxy") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	_ = os.Chmod(dir, 0o777) // nginx runs its worker as another user
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(config, dir, server)), 0o600); err != nil {
		t.Fatal(err)
	}
	proxy := exec.Command(path, append(args, file)...)
	proxy.Dir, proxy.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	output := new(scene.Buffer)
	proxy.Stdout, proxy.Stderr = output, output
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- proxy.Wait() }()
	t.Cleanup(func() {
		_ = proxy.Process.Signal(syscall.SIGTERM)
		<-exited
	})
	socket := filepath.Join(dir, "socket")
	deadline := time.After(20 * time.Second)
	for {
		c, err := net.Dial("unix", socket)
		if err == nil {
			status := roundTrip(c, plainGet)
			c.Close()
			if status == http.StatusOK {
				return dialer(t, "unix", socket)
			}
		}
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("%s: %v\n%s", program, err, output)
		case <-deadline:
			t.Fatalf("%s does not listen: %v\n%s", program, err, output)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startCareless starts a proxy. It forwards the head of a request unchanged and the body
// as chunked if chunked says so for the head, or else by Content-Length. All its clients
// share one connection to the server. The server may wait for more of an attacker's body;
// after patience, the proxy closes the connection.
func startCareless(t *testing.T, server string, patience time.Duration, chunked func(head string) bool) func() net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var shared struct {
		sync.Mutex
		conn   net.Conn
		reader *bufio.Reader
	}
	drop := func() {
		if shared.conn != nil {
			shared.conn.Close()
			shared.conn = nil
		}
	}
	forward := func(request []byte) (answer []byte, last bool) {
		shared.Lock()
		defer shared.Unlock()
		if shared.conn == nil {
			c, err := net.Dial("tcp", server)
			if err != nil {
				return nil, true
			}
			shared.conn, shared.reader = c, bufio.NewReader(c)
		}
		timeout := 10 * time.Second
		if bytes.HasPrefix(request, []byte("POST /attacker")) {
			timeout = patience
		}
		_ = shared.conn.SetDeadline(time.Now().Add(timeout))
		_, _ = shared.conn.Write(request)
		method, _, _ := strings.Cut(string(request), " ")
		response, err := http.ReadResponse(shared.reader, &http.Request{Method: method})
		for err == nil && response.StatusCode == http.StatusContinue {
			response, err = http.ReadResponse(shared.reader, &http.Request{Method: method})
		}
		if err != nil {
			drop()
			return nil, true
		}
		var out bytes.Buffer
		_ = response.Write(&out)
		if response.Close {
			drop()
		}
		return out.Bytes(), response.Close
	}
	var clients sync.WaitGroup
	serve := func(c net.Conn) {
		defer c.Close()
		reader := bufio.NewReader(c)
		for {
			request, err := readCareless(reader, chunked)
			if err != nil {
				return
			}
			answer, last := forward(request)
			if _, err := c.Write(answer); err != nil || last {
				return
			}
		}
	}
	clients.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		clients.Wait()
		drop()
	})
	return dialer(t, "tcp", listener.Addr().String())
}

// readCareless reads one request and returns its bytes.
func readCareless(reader *bufio.Reader, chunked func(head string) bool) ([]byte, error) {
	var head strings.Builder
	length := 0
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return nil, err
		}
		head.WriteString(line)
		if value, ok := strings.CutPrefix(strings.ToLower(line), "content-length:"); ok {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
		if strings.TrimRight(line, "\r\n") == "" && head.Len() > 2 {
			break
		}
	}
	body := []byte(head.String())
	if !chunked(head.String()) {
		rest := make([]byte, min(max(length, 0), 1<<20))
		_, err := io.ReadFull(reader, rest)
		return append(body, rest...), err
	}
	for !bytes.HasSuffix(body, []byte("\r\n0\r\n\r\n")) {
		b, err := reader.ReadByte()
		if err != nil {
			return nil, err
		}
		body = append(body, b)
	}
	return body, nil
}
