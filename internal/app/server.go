package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
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

// door is one HTTP server on one address. The address is taken when the door
// is made; requests are answered from open on.
type door struct {
	listener *listener
	server   *http.Server
	running  sync.WaitGroup // handlers
}

// newDoor takes an address. Until open, connections wait in the kernel.
func newDoor(ctx context.Context, address string, limits connectionLimits, log *slog.Logger) (*door, error) {
	var config net.ListenConfig
	taken, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	listener := newListener(taken, limits, log)
	return &door{
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
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}, nil
}

// address is HOST:PORT as listened on.
func (d *door) address() string { return d.listener.Addr().String() }

// reachable is HOST:PORT as it can be dialled on this machine: a door that takes
// what comes to any address of it is at the loopback too.
func (d *door) reachable() string {
	at, ok := d.listener.Addr().(*net.TCPAddr)
	if !ok || !at.IP.IsUnspecified() {
		return d.address()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(at.Port))
}

// everywhere tells whether the door takes what comes to any address of the
// machine, so that it knows none to name to others.
func (d *door) everywhere() bool { return d.reachable() != d.address() }

// open begins to answer. Should the server fail, failed gets why.
func (d *door) open(handler http.Handler, failed chan<- error) {
	d.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.running.Add(1)
		defer d.running.Done()
		c, _ := r.Context().Value(connKey{}).(*conn)
		becomes := c.begin(r)
		switch becomes {
		case desynced:
			c.linger()
			panic(http.ErrAbortHandler)
		case closeAfter, ambiguous:
			w.Header().Set("Connection", "close")
		}
		r, body := receive(w, r, c, d.listener.now)
		if becomes == ambiguous {
			twoEnds(w, r)
		} else {
			handler.ServeHTTP(w, r)
		}
		body.leave()
	})
	go func() {
		if err := d.server.Serve(d.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve %s: %w", d.address(), err)
		}
	}()
}

// drain stops accepting and lets running requests finish within grace; then it
// cuts them and waits a moment for their handlers, which settle what they owe.
// It reports whether all finished by themselves.
func (d *door) drain(grace time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := d.server.Shutdown(ctx)
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return false, fmt.Errorf("stop %s: %w", d.address(), err)
	}
	if err := d.server.Close(); err != nil {
		return false, fmt.Errorf("stop %s: %w", d.address(), err)
	}
	gone := make(chan struct{})
	go func() {
		d.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(cutBound):
	}
	return false, nil
}

// close releases the address of a door that may never have been opened. The
// server closes the address too if it was, sooner or later.
func (d *door) close(context.Context) error {
	var errs []error
	for _, err := range []error{d.server.Close(), d.listener.Close()} {
		if !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
