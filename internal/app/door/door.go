// Package door owns one HTTP server on one address: what bounds its connections,
// how the bodies of requests arrive, and what is answered to what cannot be read
// as HTTP/1.1.
//
// Invariants: a connection on which a request runs makes room for no other, until
// its answer is out; every
// wait for a client has an end, but no answer is cut for its length; a connection
// serves another request only while it is certain, from its bytes as they came,
// where that one begins; what net/http refuses is answered in the shape of our errors
// too.
package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// Limits of every server connection, beside those of the types arriving and
// conn. There is no limit on the time of an answer: streams run as long as
// the request may.
const (
	headerTimeout  = 10 * time.Second // to send the header of a request
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	maxHeaderBytes = 64 << 10
)

// cutBound is how long handlers may take to notice that they were cut.
const cutBound = 5 * time.Second

// Options are what bounds the connections of a door, and its log, which must be set.
// What is 0 goes by how many descriptors the process may have.
type Options struct {
	MaxConnections           int            // at a time
	MaxConnectionsPerAddress int            // of one client's network (limit.Network)
	TrustedProxies           []netip.Prefix // count towards no network: theirs are the connections of many
	Log                      *slog.Logger
}

// Server is a door: it has its address since Listen, and answers requests from Open
// on. It ends with Drain, and with Close in any case.
type Server struct {
	listener *listener
	server   *http.Server
	running  sync.WaitGroup // handlers
}

// Listen takes an address, HOST:PORT. Until Open, connections wait in the kernel. An
// error is that of net, and leaves nothing behind.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	var config net.ListenConfig
	taken, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	listener := newListener(taken, o.filled(descriptors()))
	return &Server{
		listener: listener,
		server: &http.Server{
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			// `OPTIONS *` is a request like others.
			DisableGeneralOptionsHandler: true,

			ConnState: listener.changed,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
			ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		},
	}, nil
}

// Address is HOST:PORT as listened on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Reachable is HOST:PORT as it can be dialled on this machine: a door that takes
// what comes to any address of it is at the loopback too.
func (s *Server) Reachable() string {
	at, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() {
		return s.Address()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
}

// Everywhere tells whether the door takes what comes to any address of the
// machine, so that it knows none to name to others.
func (s *Server) Everywhere() bool { return s.Reachable() != s.Address() }

// Open begins to answer; call it once. Should the server fail, failed gets why: it
// needs room for one error.
func (s *Server) Open(handler http.Handler, failed chan<- error) {
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		c, _ := r.Context().Value(connKey{}).(*conn)
		becomes := c.begin(r)
		switch becomes {
		case desynced:
			c.linger()
			panic(http.ErrAbortHandler)
		case closeAfter, ambiguous:
			w.Header().Set("Connection", "close")
		}
		r, body := receive(w, r, c, s.listener.now)
		if becomes == ambiguous {
			twoEnds(w, r)
		} else {
			handler.ServeHTTP(w, r)
		}
		body.leave()
	})
	go func() {
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve %s: %w", s.Address(), err)
		}
	}()
}

// Drain stops accepting and lets running requests finish within grace; then it
// cuts them and waits a moment for their handlers, which settle what they owe.
// It reports whether all finished by themselves.
func (s *Server) Drain(grace time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return false, fmt.Errorf("stop %s: %w", s.Address(), err)
	}
	if err := s.server.Close(); err != nil {
		return false, fmt.Errorf("stop %s: %w", s.Address(), err)
	}
	gone := make(chan struct{})
	go func() {
		s.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(cutBound):
	}
	return false, nil
}

// Close releases the address of a door that may never have been opened. The
// server closes the address too if it was, sooner or later.
func (s *Server) Close(context.Context) error {
	var errs []error
	for _, err := range []error{s.server.Close(), s.listener.Close()} {
		if !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
