// Package app owns the life of the process: settings, construction, the background loops and the
// order of the shutdown.
//
// Invariants: addresses and locks are taken before anything is changed. Everything constructed is
// undone in reverse order, so servers close first and stores last. Each step has a time limit. The
// ready line is not printed before requests are answered.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"tollgate/internal/app/metrics"
	"tollgate/internal/app/server"
	"tollgate/internal/catalog"
	"tollgate/internal/httpapi"
	"tollgate/internal/limit"
	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/jobcall"
)

// Options configures the process. All fields but Restart and Reread must be set.
type Options struct {
	Stdout  io.Writer                        // receives the output of a first start
	Stderr  io.Writer                        // receives the ready line and the log
	Lookup  func(name string) (string, bool) // the environment, for line credentials
	Version string
	Restart string // the command that starts the process again in the same way; if empty, `tollgate serve`
	// Reread triggers a new read of the secrets of lines at each value, if not nil.
	Reread <-chan os.Signal

	wrongKeys limit.Allowance // for tests, whose machines differ in speed; zero means wrongKeys()
}

// App is a whole tollgate, ready to serve. Serve it once.
type App struct {
	settings *Settings
	options  Options
	log      *slog.Logger
	life     lifecycle
	metrics  *metrics.Metrics
	ready    *readiness
	watcher  *catalog.Watcher
	files    *media.Store
	token    *httpapi.OperatorToken
	endWaits func()     // answers clients that wait for the result of a job
	outdated chan error // gets the reason if a newer version has made the schema unusable
	ballast  []byte     // never touched; from ballastSize

	server          *server.Server // the product
	metricsServer   *server.Server // /metrics alone; nil without metrics_listen
	operatorServer  *server.Server // all routes for the operator's token; nil without admin_listen
	handler         http.Handler   // of server
	operatorHandler http.Handler   // of operatorServer
	demo            *demo          // output of a first start; nil on a later one
	createdToken    bool           // this start created the operator's token and prints it
}

// New starts every room in the order of rooms.list. It answers no requests yet. An error that the
// operator can fix in the settings is a SettingError. Except for the files of new secrets, such an error
// occurs before the database is changed. The first setup of an empty database comes late, because its
// output is shown only once. After an error nothing is left running.
func New(ctx context.Context, s *Settings, o Options) (_ *App, err error) {
	if s, err = withTokenFile(s); err != nil {
		return nil, err
	}
	if s, err = withSecretKey(s); err != nil {
		return nil, err
	}
	logger := newLog(s, o.Stderr)
	a := &App{settings: s, options: o, log: slog.New(logger), metrics: metrics.New(o.Version),
		token: httpapi.NewOperatorToken(s.AdminToken), outdated: make(chan error, 1)}
	a.life.log = a.log
	defer func() {
		if err != nil {
			err = errors.Join(err, a.life.unwind())
		}
	}()
	a.life.loop("log", logger.Run)
	r := &rooms{App: a, memory: boundMemory(o.Lookup), providers: Providers()}
	a.ballast = make([]byte, ballastSize(r.memory))
	for _, start := range r.list() {
		if err := start(ctx); err != nil {
			return nil, err
		}
	}
	a.warnOfSettings(a.watcher.Current())
	return a, nil
}

// clockJumped logs and counts a jump of the database's clock for the operator.
func (a *App) clockJumped(jump time.Duration) {
	direction := "ahead"
	if jump < 0 {
		direction = "back"
	}
	a.metrics.ClockJumped(direction)
	a.log.Warn("the clock for limits jumped: check the time of the machine; nothing is deleted because of the jump",
		"direction", direction, "by", jump.Abs().Round(time.Millisecond).String())
}

// mediaBase returns the base address of result files.
func (a *App) mediaBase() string { return cmp.Or(a.settings.MediaURL, a.Base()+"/media") }

// warnOfSettings warns of a missing catalog and of unused variables.
func (a *App) warnOfSettings(s *catalog.Snapshot) {
	if s.Revision == 0 {
		a.log.Warn("there is no catalog yet, so every model is unknown: run `tollgate apply FILE`")
	}
	var lines []catalog.LineSpec
	for _, l := range s.AllLines() {
		lines = append(lines, l.LineSpec)
	}
	for _, words := range unreadVariables(a.settings.Unknown, variables(), lines) {
		a.log.Warn("unused variable: " + words)
	}
}

// Base returns the public base address.
func (a *App) Base() string { return cmp.Or(a.settings.PublicURL, "http://"+a.server.Reachable()) }

// Serve shows the output of a first start, prints the ready line and answers until ctx ends or a
// server fails. Then it stops accepting, lets running requests finish within the grace, and undoes
// everything.
func (a *App) Serve(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.life.unwind()) }()
	if err := a.welcome(a.options.Stdout); err != nil {
		return fmt.Errorf("print the result of the first start: %w", err)
	}
	failed := make(chan error, 3)
	a.server.Serve(a.handler, failed)
	if a.metricsServer != nil {
		a.metricsServer.Serve(onlyMetrics(a.log, a.metrics.Handler()), failed)
	}
	if a.operatorServer != nil {
		a.operatorServer.Serve(a.operatorHandler, failed)
		if !a.token.IsSet() {
			a.log.Warn("admin_listen serves no operator API: admin_token is not set", "address", "http://"+a.operatorServer.Reachable())
		} else {
			a.log.Info("the operator API has a separate address", "address", "http://"+a.operatorServer.Reachable())
		}
	}
	if _, err := fmt.Fprintf(a.options.Stderr, "listening on http://%s\n", a.server.Reachable()); err != nil {
		return err
	}
	debug.FreeOSMemory() // a start leaves twice as much garbage as live memory, and an idle gateway would never collect it
	reason := a.untilStopped(ctx, failed)
	if reason != nil && !errors.Is(reason, store.ErrNewerSchema) {
		return reason
	}
	if reason != nil {
		a.log.Error("stopping: a newer version has changed the database so that this version cannot serve it", "error", reason)
	}
	if err := a.announceStop(failed); err != nil {
		return err
	}
	a.log.Info("stopping: no new requests, running ones may finish", "within", a.settings.ShutdownGrace.String())
	return errors.Join(reason, a.drain())
}

// untilStopped reads the secrets of lines, the credentials of the media bucket and the operator's
// token again on request, until ctx ends, a server fails, or a newer version has made the schema
// unusable. It returns the server's error, or one that wraps store.ErrNewerSchema.
func (a *App) untilStopped(ctx context.Context, failed <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case err := <-a.outdated:
			return err
		case <-a.options.Reread:
			a.watcher.ReloadSecrets()
			a.files.Reread(ctx)
			a.rereadToken()
		}
	}
}

// announceStop reports this node as not ready before it stops accepting requests. It returns the
// error of a server that fails meanwhile.
func (a *App) announceStop(failed <-chan error) error {
	a.ready.stopping.Store(true)
	if a.settings.ShutdownDelay == 0 {
		return nil
	}
	a.log.Info("stopping: no longer ready, but new requests are still accepted", "for", a.settings.ShutdownDelay.String())
	select {
	case <-time.After(a.settings.ShutdownDelay):
		return nil
	case err := <-failed:
		return err
	}
}

// drain lets the running requests of all servers finish. Clients that wait for the result of a job
// get their 202 before the end of the grace.
func (a *App) drain() error {
	timer := time.AfterFunc(a.settings.ShutdownGrace*3/4, a.endWaits)
	defer timer.Stop()
	servers := []*server.Server{a.server}
	if a.operatorServer != nil {
		servers = append(servers, a.operatorServer)
	}
	ends := make(chan error, len(servers))
	for _, s := range servers {
		go func() {
			inTime, err := s.Drain(a.settings.ShutdownGrace)
			if !inTime && err == nil {
				a.log.Warn("running requests were cut at the end of shutdown_grace")
			}
			ends <- err
		}()
	}
	var errs []error
	for range servers {
		errs = append(errs, <-ends)
	}
	return errors.Join(errs...)
}

// Providers returns the adapters' properties for the catalog.
func Providers() map[string]catalog.Provider {
	out := make(map[string]catalog.Provider)
	for name, info := range adapters.Providers() {
		kinds := make([]catalog.Kind, len(info.Kinds))
		for i, kind := range info.Kinds {
			kinds[i] = catalog.Kind(kind)
		}
		out[name] = catalog.Provider{
			Kinds: kinds, Forms: info.Forms, OptionalForms: info.OptionalForms, DefaultBaseURL: info.DefaultBaseURL,
			NeedsBaseURL: info.NeedsBaseURL, NeedsKey: info.NeedsKey, Keyless: info.Keyless,
			NeedsForms: info.NeedsForms, CheckOptions: info.CheckOptions,
			KeyHeaders: info.KeyHeaders,
			CheckField: func(l *catalog.LineSpec, m *catalog.Model, field string, omit bool) error {
				t := upstream.Target{Provider: name, BaseURL: l.BaseURL, Options: l.Options}
				return adapters.CheckField(t, jobcall.Task{Kind: string(m.Kind), Model: l.Models[m.ID]}, field, omit)
			},
		}
	}
	return out
}
