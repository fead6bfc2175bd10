// Package server owns an HTTP server on one address: the limits of its connections, the
// time for request bodies, and the errors of requests unreadable to net/http.
//
// Invariants: a connection with a running request is never closed to make room for
// another one; every wait for a client ends, but no response is cut because it is long;
// a connection is closed after a request if another server might see its end elsewhere;
// errors written by net/http itself have the shape of all other errors.
package server

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

// Limits of every connection; body.go and listener.go have more. There is no limit on
// the duration of a response: a stream may last as long as its request.
const (
	headerTimeout  = 10 * time.Second // to send the header of a request
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	maxHeaderBytes = 64 << 10
)

// cutBound limits the wait for handlers after Drain has closed their connections.
const cutBound = 5 * time.Second

// Options are the limits of a server's connections and its log. Log must be set. A limit
// of zero is derived from the process's limit of file descriptors.
type Options struct {
	MaxConnections           int            // in total
	MaxConnectionsPerAddress int            // of one client's network (limit.Network)
	TrustedProxies           []netip.Prefix // exempt from MaxConnectionsPerAddress
	Log                      *slog.Logger
}

// Server is an HTTP server. Listen takes its address, and Serve starts to answer. End it
// with Drain, Close or both.
type Server struct {
	listener *listener
	server   *http.Server
	running  sync.WaitGroup // handlers
}

// Listen listens on an address, HOST:PORT. Until Serve, connections wait in the kernel.
// The error is that of the net package.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	var config net.ListenConfig
	tcp, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	listener := newListener(tcp, o.withDefaults(descriptors()))
	return &Server{
		listener: listener,
		server: &http.Server{
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			// The handler answers `OPTIONS *` too.
			DisableGeneralOptionsHandler: true,

			ConnState: listener.stateChanged,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connKey{}, c)
			},
			ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		},
	}, nil
}

// Address returns the HOST:PORT of the server.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Reachable returns a HOST:PORT that this machine can dial: the loopback address if the
// server listens on all addresses.
func (s *Server) Reachable() string {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsUnspecified() {
		return s.Address()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(address.Port))
}

// OnAllAddresses reports whether the server listens on all addresses of the machine.
func (s *Server) OnAllAddresses() bool { return s.Reachable() != s.Address() }

// Serve starts to answer requests and returns. It must be called once. If the server
// fails, its error is sent to failed, which must have room for it.
func (s *Server) Serve(handler http.Handler, failed chan<- error) {
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		c, _ := r.Context().Value(connKey{}).(*conn)
		c.handled.Store(true)
		if endsUnclearly(r) {
			w.Header().Set("Connection", "close")
		}
		r, body := withDeadlines(w, r, c, s.listener.now)
		handler.ServeHTTP(w, r)
		body.finish()
	})
	go func() {
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve %s: %w", s.Address(), err)
		}
	}()
}

// endsUnclearly reports whether a proxy in front of the server might see the end of the
// request somewhere else: net/http drops a Content-Length beside Transfer-Encoding and
// ignores Transfer-Encoding in HTTP/1.0, and servers differ in how strictly they read
// chunks. The proxy might take bytes of this body for the next client's request.
func endsUnclearly(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// Drain stops accepting connections and waits up to grace for running requests. It then
// closes their connections and waits up to cutBound for their handlers to settle. It
// reports whether all requests finished within grace.
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
	finished := make(chan struct{})
	go func() {
		s.running.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(cutBound):
	}
	return false, nil
}

// Close closes the server at once. Unlike Drain, it also releases the address if Serve
// was never called.
func (s *Server) Close(context.Context) error {
	var errs []error
	for _, err := range []error{s.server.Close(), s.listener.Close()} {
		if !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
