package fakeprovider_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tollgate/internal/gatewaytest/fakeprovider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post sends a request on a new connection.
func post(t *testing.T, p *fakeprovider.Server, body string) (*http.Response, error) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	return (&http.Client{Transport: transport}).Post(p.URL()+"/chat/completions", "application/json", strings.NewReader(body))
}

// TestReplies checks that the client gets each kind of reply.
func TestReplies(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	close(open)
	for name, tt := range map[string]struct {
		reply       fakeprovider.Reply
		noHead      bool // the client gets no head
		broken      bool // the body is incomplete
		status      int
		contentType string
		body        string // beginning of the body
	}{
		"answer": {reply: fakeprovider.Answer("hi", 3, 1), status: 200, contentType: "application/json", body: `{"id":"chatcmpl-fake"`},
		"stream": {reply: fakeprovider.Stream(3, 1, "hi"), status: 200, contentType: "text/event-stream",
			body: `data: {"id":"chatcmpl-fake"`},
		"busy": {reply: fakeprovider.Busy(7), status: 429, contentType: "application/json",
			body: `{"error":{"message":"Rate limit reached."`},
		"page":    {reply: fakeprovider.Page(502), status: 502, contentType: "text/html; charset=utf-8", body: "<!DOCTYPE"},
		"no type": {reply: fakeprovider.Reply{ContentType: "-", Body: "x"}, status: 200, body: "x"},
		"lines of data": {reply: fakeprovider.Reply{Events: []string{"a\nb"}, Gate: open}, status: 200, contentType: "text/event-stream",
			body: "data: a\ndata: b\n\n"},
		"reset": {reply: fakeprovider.Reply{Before: fakeprovider.Reset}, noHead: true},
		"cut":   {reply: fakeprovider.Reply{Before: fakeprovider.Cut}, noHead: true},
		"cut after": {reply: fakeprovider.Reply{Events: []string{"a"}, End: fakeprovider.Cut}, broken: true, status: 200,
			contentType: "text/event-stream", body: "data: a\n\n"},
		"reset at head": {reply: fakeprovider.Reply{AfterHead: fakeprovider.Reset}, broken: true, status: 200, contentType: "application/json"},
		"truncated": {reply: fakeprovider.Reply{Body: "half", Length: 8}, broken: true, status: 200, contentType: "application/json",
			body: "half"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeprovider.New(t, tt.reply)
			resp, err := post(t, p, "{}")
			if (err != nil) != tt.noHead {
				t.Fatalf("error %v", err)
			}
			if err != nil {
				return
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if (err != nil) != tt.broken {
				t.Errorf("the body ended with %v", err)
			}
			if resp.StatusCode != tt.status || resp.Header.Get("Content-Type") != tt.contentType || !strings.HasPrefix(string(body), tt.body) {
				t.Errorf("%d %q %q", resp.StatusCode, resp.Header.Get("Content-Type"), body)
			}
			if p.Remaining() != 0 {
				t.Errorf("%d replies remain", p.Remaining())
			}
		})
	}
}

// TestRecords checks Requests and Always.
func TestRecords(t *testing.T) {
	t.Parallel()
	p := fakeprovider.New(t, fakeprovider.Answer("scripted", 1, 1))
	p.Always(func(r fakeprovider.Request) fakeprovider.Reply {
		return fakeprovider.Reply{Body: "echo " + string(r.Body)}
	})
	for i, want := range []string{`{"id"`, "echo two"} {
		resp, err := post(t, p, []string{"one", "two"}[i])
		if err != nil {
			t.Fatal(err)
		}
		p.WaitRequest()
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.HasPrefix(string(body), want) {
			t.Errorf("answer %d: %s", i, body)
		}
	}
	got := p.Requests()
	if len(got) != 2 || string(got[0].Body) != "one" || string(got[1].Body) != "two" || got[0].Method != "POST" ||
		got[0].Path != "/v1/chat/completions" || got[0].Header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v", got)
	}
}

// TestWire checks that Wire is sent unchanged.
func TestWire(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]fakeprovider.Reply{
		"garbage":         {Wire: "SSH-2.0-OpenSSH_9.6\r\n"},
		"truncated head":  {Wire: "HTTP/1.1 200 OK\r\nContent-Ty", End: fakeprovider.Reset},
		"truncated chunk": {Wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf"},
		"stalled head":    {Wire: "HTTP/1.1 200 OK\r\n", End: fakeprovider.Stall},
		"stalled chunk":   {Wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf", End: fakeprovider.Stall},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakeprovider.New(t, reply)
			if reply.End == fakeprovider.Stall {
				go func() {
					p.WaitRequest()
					p.Close()
				}()
			}
			resp, err := post(t, p, "{}")
			if err == nil {
				defer resp.Body.Close()
				_, err = io.ReadAll(resp.Body)
			}
			if err == nil {
				t.Error("the answer looks complete")
			}
		})
	}
}

// TestBroken checks ClosedAddress and GoAway.
func TestBroken(t *testing.T) {
	t.Parallel()
	trusted := fakeprovider.NewTLS(t).Transport()
	defer trusted.CloseIdleConnections()
	client := &http.Client{Transport: trusted}
	if resp, err := client.Post(fakeprovider.ClosedAddress(t), "application/json", strings.NewReader("{}")); err == nil {
		resp.Body.Close()
		t.Error("the port accepts connections")
	}
	g := fakeprovider.NewGoAway(t)
	resp, err := client.Post(g.URL(), "application/json", strings.NewReader("{}"))
	if err == nil {
		resp.Body.Close()
		t.Error("the server answered instead of GOAWAY")
	} else if !strings.Contains(err.Error(), "GOAWAY") {
		t.Errorf("the request failed with %v; want GOAWAY", err)
	}
	if g.Requests() != 1 {
		t.Errorf("%d requests; want 1", g.Requests())
	}
}
