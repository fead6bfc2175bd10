// Package server owns an HTTP server on one address: the limits of its connections, the time for
// request bodies, and the error responses to requests that net/http cannot parse.
//
// Invariants:
//   - A connection with a running request is never closed to make room for another connection.
//   - Every wait for a client has a limit, but a long response is not cut off.
//   - If a proxy might place the end of a request elsewhere, the connection is closed after the
//     request.
//   - Errors written by net/http itself have the shape of all other errors.
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

// Limits of every connection. Further limits are in body.go and listener.go. The duration of a
// response has no limit, because a stream lasts as long as its request.
const (
	headerTimeout  = 10 * time.Second // to send the header of a request
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	maxHeaderBytes = 64 << 10
)

// settleTimeout limits the wait for handlers after Drain has closed their connections.
const settleTimeout = 5 * time.Second

// Options configures a server. Log must be set. A limit of zero is derived from the process's limit
// of file descriptors.
type Options struct {
	MaxConnections           int            // in total
	MaxConnectionsPerAddress int            // of one client's network (limit.Network)
	TrustedProxies           []netip.Prefix // exempt from MaxConnectionsPerAddress
	Log                      *slog.Logger
}

// Server is an HTTP server. Listen creates a Server and reserves its address, and Serve starts to
// answer requests. Stop a Server with Drain, Close or both.
type Server struct {
	listener *listener
	server   *http.Server
	running  sync.WaitGroup // handlers
}

// Listen listens on an address, HOST:PORT. Until Serve is called, connections wait in the kernel.
// Listen returns the error of net.ListenConfig.Listen unchanged.
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
			// The handler must also answer `OPTIONS *`.
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

// Reachable returns a HOST:PORT that this machine can dial. If the server listens on all addresses,
// HOST is the loopback address.
func (s *Server) Reachable() string {
	address, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsUnspecified() {
		return s.Address()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(address.Port))
}

// OnAllAddresses reports whether the server listens on all addresses of the machine.
func (s *Server) OnAllAddresses() bool { return s.Reachable() != s.Address() }

// Serve starts to answer requests and returns at once. It must be called at most once. If the
// server fails, Serve sends the error to failed, which must have a free buffer slot.
func (s *Server) Serve(handler http.Handler, failed chan<- error) {
	s.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		c, _ := r.Context().Value(connKey{}).(*conn)
		c.handled.Store(true)
		if hasAmbiguousEnd(r) {
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

// hasAmbiguousEnd reports whether a proxy in front of the server might place the end of the request
// elsewhere. net/http drops a Content-Length beside Transfer-Encoding and ignores Transfer-Encoding
// in HTTP/1.0, and servers differ in how strictly they parse chunks. The proxy might then treat
// bytes of this body as the next client's request.
func hasAmbiguousEnd(r *http.Request) bool {
	return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
}

// Drain stops accepting connections and waits up to grace for running requests. It then closes the
// connections of the remaining requests and waits up to settleTimeout for their handlers to return.
// Drain reports whether all requests finished within grace.
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
	case <-time.After(settleTimeout):
	}
	return false, nil
}

// Close closes the server at once. Unlike Drain, Close releases the address even if Serve was never
// called.
func (s *Server) Close(context.Context) error {
	var errs []error
	for _, err := range []error{s.server.Close(), s.listener.Close()} {
		if !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
