// Package app owns the life of the process: settings, construction, the background loops and the
// order of the shutdown.
//
// Invariants: addresses and locks are taken before anything is changed. Everything constructed is
// undone in reverse order, so servers close first and stores last, each step under a bound. The
// ready line is printed when the first request would be answered, and not before.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/app/metrics"
	"tollgate/internal/app/server"
	"tollgate/internal/catalog"
	"tollgate/internal/console"
	"tollgate/internal/console/static"
	"tollgate/internal/contract"
	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
	"tollgate/internal/media"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/webhook"
)

// Options are the surroundings of the process. All but Reread must be set.
type Options struct {
	Stdout  io.Writer                        // receives the output of a first start
	Stderr  io.Writer                        // the ready line and the log
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
	ballast  []byte // never touched; from ballastSize

	server          *server.Server // the product
	metricsServer   *server.Server // /metrics alone; nil without metrics_listen
	operatorServer  *server.Server // all routes for the operator's token; nil without admin_listen
	handler         http.Handler   // of server
	operatorHandler http.Handler   // of operatorServer
	demo            *demo          // output of a first start; nil on a later one
	owned           bool           // this start has made the operator's token, and shows it
}

// New starts every room in the order of rooms.list. It answers no requests yet. An error that the
// operator can fix in the settings is a SettingError and occurs before the database is changed. The
// first setup of an empty database comes late, because its output is shown only once. After an
// error nothing is left running.
func New(ctx context.Context, s *Settings, o Options) (_ *App, err error) {
	if s, err = withTokenFile(s); err != nil {
		return nil, err
	}
	logger := newLog(s, o.Stderr)
	a := &App{settings: s, options: o, log: slog.New(logger), metrics: metrics.New(o.Version),
		token: httpapi.NewOperatorToken(s.AdminToken)}
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

// openGuard returns the guard for addresses from users and providers.
func (a *App) openGuard(files *media.Store) *egress.Guard {
	guard := egress.New(a.settings.PrivateNetworks)
	guard.Own = files.OpenLink
	if _, err := net.InterfaceAddrs(); err != nil {
		a.log.Error("the addresses of this machine cannot be read, so callbacks, webhooks, references and results of jobs reach only "+
			"private_networks: allow the process to open netlink sockets (systemd: AF_NETLINK in RestrictAddressFamilies)", "error", err)
	}
	return guard
}

// openFronts creates the handlers of the servers. The operator's pages are served where
// the operator API is.
func (a *App) openFronts(served surfaces, pages console.Options) (err error) {
	files, err := static.Read()
	if err != nil {
		return fmt.Errorf("read the console's files: %w", err)
	}
	if served.pages, err = contract.NewSite(files.Path, fault.Told); err != nil {
		return fmt.Errorf("make the reference: %w", err)
	}
	if a.operatorServer != nil {
		public, private := served.parted()
		pages.Side = console.Operators
		if private.console, err = console.New(pages); err != nil {
			return fmt.Errorf("make the operator's console: %w", err)
		}
		served, a.operatorHandler = public, newFront(private)
		pages.Side = console.Users
	}
	if served.console, err = console.New(pages); err != nil {
		return fmt.Errorf("make the console: %w", err)
	}
	a.handler = newFront(served)
	return nil
}

// whoEnters returns a function that reports which people can sign in to the console. If the
// database is unavailable, it reports true, so that the console can show the error.
func (a *App) whoEnters(db *store.DB) func(ctx context.Context) (users, operators bool) {
	return func(ctx context.Context) (users, operators bool) {
		ctx, cancel := context.WithTimeout(ctx, readyBound)
		defer cancel()
		err := db.View(ctx, func(tx *store.Tx) (err error) {
			users, operators, err = account.SignInsTx(tx)
			return err
		})
		if err != nil {
			a.log.Warn("the first page cannot tell whether the console is there", "error", err)
			return true, true
		}
		return users, operators
	}
}

// openDatabase opens and locks the database.
func (a *App) openDatabase(ctx context.Context) (*store.DB, error) {
	var db *store.DB
	err := waitUntilUp(ctx, "database", a.settings.StartWait, a.log, func(ctx context.Context) (err error) {
		db, err = open(ctx, a.settings, a.clockJumped)
		return err
	})
	if err != nil {
		return nil, err
	}
	release, err := lockFile(ctx, db)
	if err != nil {
		if errors.Is(err, store.ErrServed) {
			err = fmt.Errorf("%w: stop it first, or give this one another file with --database", err)
		}
		return nil, errors.Join(startError("database", err), db.Close())
	}
	// The lock outlives the connections: until they are closed, no other process may take this one
	// for dead.
	a.life.later("lock file", func(context.Context) error { return release() })
	a.life.later("database", func(context.Context) error { return db.Close() })
	return db, nil
}

// migrationAttempts bounds how often a start runs the migrations.
const migrationAttempts = 5

// migrate runs the migrations. If the connection breaks, it waits until the database is up, at most
// start_wait, and runs the remaining migrations; each is one transaction.
func (a *App) migrate(ctx context.Context, run, ping func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := run(ctx)
		if err == nil || attempt == migrationAttempts || ctx.Err() != nil || !isNotUp(err) && !store.ConnectionLost(err) {
			return err
		}
		a.log.Warn("the connection to the database broke during a migration: trying again", "error", err)
		if err := waitUntilUp(ctx, "database", a.settings.StartWait, a.log, ping); err != nil {
			return err
		}
	}
}

// clockJumped logs and counts a jump of the database's clock for the operator.
func (a *App) clockJumped(jump time.Duration) {
	direction := "ahead"
	if jump < 0 {
		direction = "back"
	}
	a.metrics.ClockJumped(direction)
	a.log.Warn("the clock that limits go by has jumped: see that it is right; nothing is deleted for it",
		"direction", direction, "by", jump.Abs().Round(time.Millisecond).String())
}

// takeAddresses listens on all addresses early, so that a start without its addresses has changed
// nothing.
func (a *App) takeAddresses(ctx context.Context) (err error) {
	bounds := server.Options{
		MaxConnections: a.settings.MaxConnections, MaxConnectionsPerAddress: a.settings.MaxConnectionsPerAddress,
		TrustedProxies: a.settings.TrustedProxies, Log: a.log,
	}
	if a.server, err = server.Listen(ctx, a.settings.Listen, bounds); err != nil {
		return startError("listen", explainListen("listen", a.settings.Listen, err))
	}
	a.life.later("server", a.server.Close)
	if a.server.OnAllAddresses() && a.settings.PublicURL == "" {
		a.log.Warn("listen names no address and public_url is not set: links lead to this machine alone, so set public_url to what users reach",
			"listen", a.settings.Listen, "links", a.Base())
	}
	if address := a.settings.MetricsListen; address != "" {
		if a.metricsServer, err = server.Listen(ctx, address, bounds); err != nil {
			return startError("metrics_listen", explainListen("metrics_listen", address, err))
		}
		a.life.later("metrics server", a.metricsServer.Close)
	}
	if address := a.settings.AdminListen; address != "" {
		if a.operatorServer, err = server.Listen(ctx, address, bounds); err != nil {
			return startError("admin_listen", explainListen("admin_listen", address, err))
		}
		a.life.later("operator's server", a.operatorServer.Close)
	}
	return nil
}

// startLedger starts the books and their loops. They also keep this node alive.
func (a *App) startLedger(ctx context.Context, db *store.DB, self *node.Node, hooks *webhook.Webhooks) (*ledger.Ledger, error) {
	books := ledger.New(ledger.Options{
		DB: db, Node: self, OutageGrace: a.settings.OutageGrace,
		Retention: a.settings.RequestRetention, Log: a.log, Observer: a.metrics.Ledger(),
		AnnounceLow: func(q *store.Batch, nowMS int64, low ledger.Low) {
			hooks.EmitLow(q, nowMS, low.Account, low.Balance, low.Level)
		},
		LowAnnounced: hooks.Wake,
	})
	if err := books.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the ledger: %w", err)
	}
	a.life.later("ledger", books.Close)
	a.life.loop("ledger upkeep", books.Run)
	return books, nil
}

// mediaBase is the base address of result files.
func (a *App) mediaBase() string {
	if a.settings.MediaURL != "" {
		return a.settings.MediaURL
	}
	return a.Base() + "/media"
}

// openMedia opens the media store; it does not look at the database yet.
func (a *App) openMedia(ctx context.Context, db *store.DB) (*media.Store, error) {
	s, base := a.settings, a.mediaBase()
	options := media.Options{
		DB: db, Location: s.Media, Base: base, Public: egress.PublicBase(base),
		Retention: s.MediaRetention, Lookup: a.options.Lookup, Log: a.log,
	}
	var files *media.Store
	open := func(ctx context.Context) (err error) {
		files, err = media.Open(ctx, options)
		return err
	}
	err := waitUntilUp(ctx, "media", s.StartWait, a.log, open)
	if err != nil && isNotUp(err) && ctx.Err() == nil { // chat needs no media store
		options.Down = err
		err = open(ctx)
	}
	if err != nil {
		return nil, startError("media", ExplainPermission(err))
	}
	if !db.OneProcess() && strings.HasPrefix(s.Media, "file:") {
		a.log.Warn("media are kept in a folder: with several nodes it has to be one that all of them share")
	}
	a.metrics.Media(files.Down)
	a.life.later("media", func(context.Context) error { files.Close(); return nil })
	return files, nil
}

// warnOfSettings warns of a missing catalog and of variables without a reader.
func (a *App) warnOfSettings(s *catalog.Snapshot) {
	if s.Revision == 0 {
		a.log.Warn("there is no catalog yet, so every model is unknown: run `tollgate apply FILE`")
	}
	var lines []catalog.LineSpec
	for _, l := range s.AllLines() {
		lines = append(lines, l.LineSpec)
	}
	for _, words := range unreadVariables(a.settings.Unknown, variables(), lines) {
		a.log.Warn("nothing reads a variable: " + words)
	}
}

// Base returns the public base address.
func (a *App) Base() string {
	if a.settings.PublicURL != "" {
		return a.settings.PublicURL
	}
	return "http://" + a.server.Reachable()
}

// Serve shows the output of a first start, prints the ready line and answers until ctx ends or a
// server fails. Then it stops accepting, lets running requests finish within the grace, and undoes
// everything.
func (a *App) Serve(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, a.life.unwind()) }()
	if err := a.welcome(a.options.Stdout); err != nil {
		return fmt.Errorf("show what the first start set up: %w", err)
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
			a.log.Info("the operator API has an address of its own", "address", "http://"+a.operatorServer.Reachable())
		}
	}
	if _, err := fmt.Fprintf(a.options.Stderr, "listening on http://%s\n", a.server.Reachable()); err != nil {
		return err
	}
	debug.FreeOSMemory() // a start leaves twice as much garbage as live memory, and an idle gateway would never collect it
	if err := a.untilStopped(ctx, failed); err != nil {
		return err
	}
	if err := a.announceStop(failed); err != nil {
		return err
	}
	a.log.Info("stopping: no new requests, running ones may finish", "within", a.settings.ShutdownGrace.String())
	return a.drain()
}

// untilStopped reads the secrets of lines, the credentials of the media bucket and the operator's
// token again on request, until ctx ends or a server fails. It returns the server's error.
func (a *App) untilStopped(ctx context.Context, failed <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-a.options.Reread:
			a.watcher.Reread()
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
	a.log.Info("stopping: not ready any more, new requests are still taken", "for", a.settings.ShutdownDelay.String())
	select {
	case <-time.After(a.settings.ShutdownDelay):
		return nil
	case err := <-failed:
		return err
	}
}

// drain lets the running requests of all servers finish.
func (a *App) drain() error {
	servers := []*server.Server{a.server}
	if a.operatorServer != nil {
		servers = append(servers, a.operatorServer)
	}
	ends := make(chan error, len(servers))
	for _, s := range servers {
		go func() {
			whole, err := s.Drain(a.settings.ShutdownGrace)
			if !whole && err == nil {
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
			Kinds: kinds, Forms: info.Forms, DefaultBaseURL: info.DefaultBaseURL,
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
