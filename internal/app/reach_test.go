package app

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/app/server"
	"tollgate/internal/store/storetest"
)

// TestShortTokens checks that a guessable token is accepted only on loopback addresses.
func TestShortTokens(t *testing.T) {
	t.Parallel()
	for listen, local := range map[string]bool{
		"127.0.0.1:0": true, "127.8.0.1:80": true, "[::1]:80": true, "localhost:80": true, "[::ffff:127.0.0.1]:80": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:80": false, "gateway.example:80": false,
	} {
		if isLoopback(listen) != local {
			t.Errorf("%s: %t", listen, !local)
		}
	}
	s := testSettings(t, storetest.SQLite(t), "admin_token: fifteen-letters")
	for _, at := range []struct{ listen, admin string }{{":0", ""}, {"127.0.0.1:0", ":0"}} {
		s.Listen, s.AdminListen = at.listen, at.admin
		_, err := quietStart(t, s)
		if fault, ok := errors.AsType[*SettingError](err); !ok || fault.Key != "admin_token" {
			t.Errorf("%+v: got %v", at, err)
		}
	}
	s.Listen, s.AdminListen = ":0", "127.0.0.1:0"
	if err := checkToken(s); err != nil {
		t.Error(err)
	}
}

// TestAdminListenWithoutToken checks that without a token the operator API is absent and the log
// gives the reason. It runs on PostgreSQL, because only there a first start creates no token.
func TestAdminListenWithoutToken(t *testing.T) {
	t.Parallel()
	p := serve(t, testSettings(t, storetest.PostgreSQL(t), "admin_listen: 127.0.0.1:0"))
	defer p.stop(t)
	if got := p.err.String(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "admin_token is not set") {
		t.Errorf("no warning in %s", got)
	}
}

// TestAdminListen checks that the routes for the operator's token are only on its address, and
// unknown on the other.
func TestAdminListen(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	p := serve(t, testSettings(t, storetest.SQLite(t), "admin_listen: 127.0.0.1:0\nadmin_token: "+token))
	if !strings.Contains(p.err.String(), "http://"+p.operatorServer.Address()) {
		t.Errorf("the output lacks the operator's address: %s", p.err)
	}
	const tail = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
	for path, want := range map[string][2]int{
		"/healthz": {200, 200}, "/readyz": {200, 200},
		"/admin/v1/accounts": {404, 200}, "/admin/v1": {404, 404}, "/metrics": {404, 200},
		"/v1/models": {401, 404}, "/v1/nothing": {404, 404}, "/media/x.png": {404, 404},
	} {
		for i, d := range []*server.Server{p.server, p.operatorServer} {
			got := sendRaw(t, d, "GET "+path+tail+token+"\r\n\r\n")
			if got.status != want[i] || got.header.Get("X-Request-Id") == "" {
				t.Errorf("%s: %d %s, want %d", path, got.status, got.body, want[i])
			}
		}
	}
	for _, path := range []string{"/admin/v1/accounts", "/metrics"} {
		for _, key := range []string{token, "wrong"} {
			unknown := sendRaw(t, p.server, "GET /v2/nothing"+tail+key+"\r\n\r\n")
			got := sendRaw(t, p.server, "GET "+path+tail+key+"\r\n\r\n")
			for _, h := range []rawResponse{unknown, got} {
				for _, own := range []string{"X-Request-Id", "Request-Id", "Date", "Content-Length"} {
					h.header.Del(own)
				}
			}
			if strings.Replace(got.body, path, "/v2/nothing", 1) != unknown.body || !maps.EqualFunc(got.header, unknown.header, slices.Equal) {
				t.Errorf("%s with %q: %v %s; an unknown path: %v %s", path, key, got.header, got.body, unknown.header, unknown.body)
			}
		}
		if got := sendRaw(t, p.operatorServer, "GET "+path+tail+"wrong\r\n\r\n"); got.status != 401 {
			t.Errorf("%s with a wrong token: %d", path, got.status)
		}
	}
	p.stop(t)
	if c, err := net.Dial("tcp", p.operatorServer.Address()); err == nil {
		c.Close()
		t.Error("the address is still taken after the stop")
	}
}

// TestUnspecifiedAddress checks that the printed addresses can be dialled, wherever the start
// listens, and that one warning asks for public_url for other machines.
func TestUnspecifiedAddress(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{":0", "0.0.0.0:0", "[::]:0", "127.0.0.1:0"} {
		for _, public := range []string{"", "https://gate.example"} {
			s := testSettings(t, storetest.SQLite(t), "admin_token: sixteen-letters-")
			s.Listen, s.PublicURL = listen, public
			p := serve(t, s)
			at := "http://127.0.0.1:" + p.server.Address()[strings.LastIndexByte(p.server.Address(), ':')+1:]
			if !strings.Contains(p.err.String(), "listening on "+at+"\n") {
				t.Errorf("%s: wrong ready line: %s", listen, p.err)
			}
			public = cmp.Or(public, at)
			if got := strings.Count(p.out.String(), "curl "+public+"/") + strings.Count(p.out.String(), "curl -N "+public+"/"); got != 9 ||
				p.Base() != public {
				t.Errorf("%s, %s: %d commands: %s", listen, public, got, p.out)
			}
			want := 0
			if public == at && listen != "127.0.0.1:0" {
				want = 1
			}
			if got := strings.Count(p.err.String(), "set public_url"); got != want {
				t.Errorf("%s, %s: %d warnings, want %d", listen, public, got, want)
			}
			p.stop(t)
		}
	}
}

// TestPublicURLWithoutQuery checks that public_url must have no query or fragment, because paths
// are appended to it.
func TestPublicURLWithoutQuery(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"https://h.example/?a=b", "https://h.example?", "https://h.example/#x"} {
		if got, err := readPublicURL(bad); err == nil {
			t.Errorf("%s passes as %q", bad, got)
		}
	}
	if got, err := readPublicURL("https://h.example/gate/"); err != nil || got != "https://h.example/gate" {
		t.Errorf("%q %v", got, err)
	}
}
