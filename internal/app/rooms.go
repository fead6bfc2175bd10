package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/admin"
	"tollgate/internal/alert"
	"tollgate/internal/announcement"
	"tollgate/internal/api"
	"tollgate/internal/app/server"
	"tollgate/internal/availability"
	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/chat"
	"tollgate/internal/console"
	"tollgate/internal/console/page"
	"tollgate/internal/console/static"
	"tollgate/internal/contract"
	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/invoice"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/books"
	"tollgate/internal/line"
	"tollgate/internal/mail"
	"tollgate/internal/media"
	"tollgate/internal/node"
	"tollgate/internal/operator"
	"tollgate/internal/provider"
	"tollgate/internal/response"
	"tollgate/internal/store"
	"tollgate/internal/topup"
	"tollgate/internal/trace"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/webhook"
)

// rooms are the parts of the process while New starts them.
type rooms struct {
	*App
	memory    int64 // memory of the process in bytes
	providers map[string]catalog.Provider

	traces    *trace.Tracer
	db        *store.DB
	guard     *egress.Guard
	node      *node.Node
	webhooks  *webhook.Webhooks
	mails     *mail.Mailer
	ledger    *ledger.Ledger
	keys      *account.Keys
	passwords *account.Passwords
	sessions  *account.SignIns
	alerts    *alert.Sender
	lines     *line.Lines
	jobs      *job.Jobs
	calls     *call.Engine
	chat      *chat.Conductor
	responses *response.Responses
	audits    *operator.Audits
	// availability is nil if the status page is off.
	availability  *availability.Availability
	announcements *announcement.Board
	topups        *topup.Topups   // nil if customers cannot pay
	invoices      *invoice.Issuer // nil if customers cannot pay and invoices are off
}

// list returns the start functions in order. Each one registers its own cleanup (lifecycle), so
// rooms stop in reverse order. No function before migrate changes the database.
func (r *rooms) list() []func(context.Context) error {
	return []func(context.Context) error{
		r.startTraces,
		r.checkSettings,
		r.openDatabase,
		r.takeAddresses,
		r.openMedia,
		r.checkFirstStart,
		r.migrate,
		r.createToken,
		r.createSecretKey,
		r.startCatalog,
		r.joinNodes,
		r.createWebhooks,
		r.startAvailability,
		r.startLedger,
		r.startMail,
		r.startKeys,
		r.setUp,
		r.startLines,
		r.startJobs,
		r.startSessions,
		r.startChat,
		r.startResponses,
		r.startAudits,
		r.startAnnouncements,
		r.startTopups,
		r.startUpgrade,
		r.startSurfaces,
	}
}

func (r *rooms) checkSettings(context.Context) error {
	if err := errors.Join(checkToken(r.settings), checkMail(r.settings), checkSignUp(r.settings), checkLegal(r.settings),
		checkSignInWith(r.settings)); err != nil {
		return err
	}
	if err := checkPayments(r.settings); err != nil {
		return err
	}
	return checkFirstMissing(r.settings, r.providers)
}

// openDatabase opens and locks the database.
func (r *rooms) openDatabase(ctx context.Context) error {
	err := waitUntilUp(ctx, "database", r.settings.StartWait, r.log, func(ctx context.Context) (err error) {
		r.db, err = open(ctx, r.settings, store.Options{OnJump: r.clockJumped, Log: r.log})
		return err
	})
	if err != nil {
		return err
	}
	release, err := lockFile(ctx, r.db)
	if err != nil {
		if errors.Is(err, store.ErrServed) {
			err = fmt.Errorf("%w: stop it first, or choose another file with --database", err)
		}
		return errors.Join(startError("database", err), r.db.Close())
	}
	// The lock outlives the connections: until they are closed, no other process may take this one
	// for dead.
	r.life.addCleanup("lock file", func(context.Context) error { return release() })
	r.life.addCleanup("database", func(context.Context) error { return r.db.Close() })
	r.metrics.Database(r.db.Connections)
	return r.checkSchema(ctx)
}

// takeAddresses listens on all addresses before the start changes anything, because an address may be
// in use.
func (r *rooms) takeAddresses(ctx context.Context) (err error) {
	bounds := server.Options{
		MaxConnections: r.settings.MaxConnections, MaxConnectionsPerAddress: r.settings.MaxConnectionsPerAddress,
		TrustedProxies: r.settings.TrustedProxies, Log: r.log,
	}
	for _, at := range []struct {
		key, address, name string
		server             **server.Server
	}{
		{"listen", r.settings.Listen, "server", &r.server},
		{"metrics_listen", r.settings.MetricsListen, "metrics server", &r.metricsServer},
		{"admin_listen", r.settings.AdminListen, "operator's server", &r.operatorServer},
	} {
		if at.address == "" {
			continue
		}
		if *at.server, err = server.Listen(ctx, at.address, bounds); err != nil {
			return startError(at.key, explainListen(at.key, at.address, err))
		}
		r.life.addCleanup(at.name, (*at.server).Close)
	}
	if r.server.OnAllAddresses() && r.settings.PublicURL == "" {
		r.log.Warn("listen has no specific address and public_url is not set, so links lead to this machine: set public_url",
			"listen", r.settings.Listen, "links", r.Base())
	}
	return nil
}

// openMedia opens the media store and the guard for addresses from users and providers. It does not
// use the database yet.
func (r *rooms) openMedia(ctx context.Context) error {
	s, base := r.settings, r.mediaBase()
	options := media.Options{
		DB: r.db, Location: s.Media, Base: base, Public: egress.PublicBase(base),
		Retention: s.MediaRetention, Lookup: r.options.Lookup, Log: r.log,
	}
	open := func(ctx context.Context) (err error) {
		r.files, err = media.Open(ctx, options)
		return err
	}
	err := waitUntilUp(ctx, "media", s.StartWait, r.log, open)
	if err != nil && isNotUp(err) && ctx.Err() == nil { // chat needs no media store
		options.Down = err
		err = open(ctx)
	}
	if err != nil {
		return startError("media", ExplainPermission(err))
	}
	if !r.db.OneProcess() && strings.HasPrefix(s.Media, "file:") {
		r.log.Warn("media are kept in a folder: all nodes must share this folder")
	}
	r.metrics.Media(r.files.Down)
	r.life.addCleanup("media", func(context.Context) error { r.files.Close(); return nil })
	r.guard = egress.New(s.PrivateNetworks)
	r.guard.OpenOwnFile = r.files.OpenLink
	if _, err := net.InterfaceAddrs(); err != nil {
		r.log.Error("the addresses of this machine cannot be read, so callbacks, webhooks, references and results of jobs can reach only "+
			"private_networks: allow the process to open netlink sockets (systemd: AF_NETLINK in RestrictAddressFamilies)", "error", err)
	}
	return nil
}

func (r *rooms) checkFirstStart(ctx context.Context) error {
	return checkFirst(ctx, r.db, r.settings, r.providers)
}

// migrationAttempts bounds how often a start runs the migrations.
const migrationAttempts = 5

// migrate runs the migrations. If the connection breaks, it waits until the database is up, at most
// start_wait, and runs the remaining migrations; each is one transaction.
func (r *rooms) migrate(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := r.db.Migrate(ctx)
		if err == nil {
			return nil
		}
		if attempt == migrationAttempts || ctx.Err() != nil || !isNotUp(err) && !store.ConnectionLost(err) {
			return fmt.Errorf("migrate the database: %w", err)
		}
		r.log.Warn("the connection to the database broke during a migration: trying again", "error", err)
		if err := waitUntilUp(ctx, "database", r.settings.StartWait, r.log, r.db.Ping); err != nil {
			return fmt.Errorf("migrate the database: %w", err)
		}
	}
}

func (r *rooms) startCatalog(ctx context.Context) error {
	r.watcher = catalog.NewWatcher(catalog.WatcherOptions{DB: r.db, Providers: r.providers,
		Lookup: r.settings.lineLookup(r.options.Lookup), Keys: r.settings.SecretKeys, Log: r.log})
	if err := r.refreshCatalog(ctx); err != nil {
		return err
	}
	r.metrics.Follow(r.watcher.Current)
	r.life.loop("catalog watcher", r.watcher.Run)
	return nil
}

func (r *rooms) refreshCatalog(ctx context.Context) error {
	if err := r.watcher.Refresh(ctx); err != nil {
		return fmt.Errorf("load the catalog: %w", err)
	}
	return nil
}

func (r *rooms) joinNodes(ctx context.Context) (err error) {
	r.node, err = node.Join(ctx, node.Options{DB: r.db, Lease: r.settings.NodeLease, Settings: r.settings.digests(), Log: r.log})
	if err != nil {
		return fmt.Errorf("register this node: %w", err)
	}
	return nil
}

// createWebhooks creates the webhooks; their loop starts after the ledger.
func (r *rooms) createWebhooks(context.Context) error {
	s := r.settings
	r.webhooks = webhook.New(webhook.Options{
		DB: r.db, Guard: r.guard, Timeout: s.WebhookTimeout, Retries: s.WebhookRetries, Retention: s.DeliveryRetention,
		Node: r.node, Log: r.log, Registry: r.metrics.Registry(),
	})
	return nil
}

// startAvailability starts the record of availability by model, if the status page is on.
func (r *rooms) startAvailability(context.Context) error {
	if r.settings.PublicStatus {
		r.availability = availability.New(availability.Options{DB: r.db, Log: r.log,
			Known: func(model string) bool { _, ok := r.watcher.Current().Model(model); return ok }})
		r.life.loop("availability of models", r.availability.Run)
	}
	return nil
}

// startLedger starts the ledger and the deliveries of webhooks. The ledger's loop also sends this node's
// heartbeats. Low balances are announced by webhook.
func (r *rooms) startLedger(ctx context.Context) error {
	observer := r.metrics.Ledger()
	if r.availability != nil {
		measure := observer.Ended
		observer.Ended = func(e books.EndedRequest) {
			measure(e)
			r.availability.Ended(e.Model, e.Code, e.Refused)
		}
	}
	r.ledger = ledger.New(ledger.Options{
		DB: r.db, Node: r.node, OutageGrace: r.settings.OutageGrace,
		QueueWait: r.settings.QueueWait, LockTimeout: r.settings.LockTimeout,
		Retention: r.settings.RequestRetention, Help: r.settings.help(), Log: r.log, Observer: observer,
		AnnounceLow: func(q *store.Batch, nowMS int64, low ledger.Low) {
			r.webhooks.EmitLow(q, nowMS, low.Account, low.Balance, low.Level)
		},
		LowAnnounced: r.webhooks.Wake,
	})
	if err := r.ledger.Start(ctx); err != nil {
		return fmt.Errorf("start the ledger: %w", err)
	}
	r.life.addCleanup("ledger", r.ledger.Close)
	r.life.loop("ledger upkeep", r.ledger.Run)
	r.life.loop("webhook deliveries", r.webhooks.Run)
	return nil
}

func (r *rooms) startKeys(context.Context) error {
	r.keys = account.NewKeys(account.KeysOptions{DB: r.db, Log: r.log, Max: r.settings.KeyCache})
	r.life.addCleanup("key cache", func(context.Context) error { r.keys.Close(); return nil })
	r.life.loop("uses of keys", r.keys.Run)
	r.passwords = account.NewPasswords()
	return nil
}

// setUp sets up an empty database and loads the catalog again, so that metrics show its lines and
// queues from the start.
func (r *rooms) setUp(ctx context.Context) (err error) {
	if r.demo, err = setUp(ctx, r.db, r.settings, r.providers, r.passwords); err != nil {
		return err
	}
	return r.refreshCatalog(ctx)
}

func (r *rooms) startLines(ctx context.Context) error {
	r.alerts = alert.New(r.settings.AlertURL, alert.Mails{DB: r.db, Mailer: r.mails, Addresses: r.settings.AlertMail}, r.log, nil)
	r.life.lingering("alerts", r.alerts.Run)
	options := adapters.Options{PublicTransport: r.guard.Transport()}
	if r.settings.ProviderConnections == "standard" {
		options.Transport = exchange.NewStandardTransport()
	}
	set := adapters.New(options)
	r.life.addCleanup("credentials of lines", func(context.Context) error { set.Close(); return nil })
	r.lines = line.New(line.Options{
		Open: set.Open, Catalog: r.watcher, DB: r.db, Node: r.node,
		Alerts: r.alerts, Log: r.log, Registry: r.metrics.Registry(),
	})
	if err := r.lines.Refresh(ctx); err != nil {
		return fmt.Errorf("read the operator's settings of lines: %w", err)
	}
	r.life.loop("line upkeep", r.lines.Run)
	return nil
}

func (r *rooms) startJobs(ctx context.Context) error {
	r.life.loop("media upkeep", r.files.Run)
	s := r.settings
	r.jobs = job.New(job.Options{
		DB: r.db, Ledger: r.ledger, Node: r.node, Lines: r.lines, Catalog: r.watcher, Media: r.files, Webhooks: r.webhooks,
		Trace: r.traces, Log: r.log, Registry: r.metrics.Registry(),
		StartLimit: s.StartLimit, MediaRetry: s.MediaRetry, Retention: s.JobRetention,
	})
	if err := r.jobs.Measure(ctx); err != nil { // for the first scrape
		return err
	}
	r.life.loop("jobs", r.jobs.Run)
	r.endWaits = r.jobs.EndWaits
	return nil
}

func (r *rooms) startSessions(context.Context) error {
	r.sessions = account.NewSignIns(r.db, r.passwords, r.log)
	r.life.loop("sessions", r.sessions.Run)
	return nil
}

func (r *rooms) startChat(context.Context) error {
	s := r.settings
	r.calls = call.New(call.Options{
		Ledger: r.ledger, Lines: r.lines, Log: r.log,
		RequestTimeout: s.RequestTimeout, MaxAnswer: s.MaxAnswer, AnswerBudget: answerMemory(s, r.memory), ExposeLine: s.ExposeLine,
		RefuseUnknown: s.RefuseUnknownFields,
	})
	r.chat = chat.New(r.calls, chat.Options{FirstToken: r.metrics.FirstToken, UnknownUsage: r.unknownUsage()})
	return nil
}

func (r *rooms) startResponses(context.Context) error {
	s := r.settings
	r.responses = response.New(response.Options{DB: r.db, Retention: s.ResponseRetention, Storage: s.ResponseStorage, Log: r.log})
	r.life.loop("stored responses", r.responses.Run)
	return nil
}

func (r *rooms) startAudits(context.Context) error {
	r.audits = operator.NewAudits(r.db, r.node, r.jobs, r.log)
	r.life.loop("audits", r.audits.Run)
	scheduler := operator.NewScheduler(operator.SchedulerOptions{DB: r.db, Providers: r.providers, Mails: r.mails,
		Readers: r.settings.AlertMail, PublicURL: r.Base(), Alert: r.alerts.Send, Log: r.log, Registry: r.metrics.Registry()})
	r.life.loop("scheduled changes of the catalog", scheduler.Run)
	return nil
}

func (r *rooms) startAnnouncements(ctx context.Context) error {
	r.announcements = announcement.NewBoard(r.db, r.log)
	if err := r.announcements.Refresh(ctx); err != nil {
		return err
	}
	r.life.loop("announcements", r.announcements.Run)
	return nil
}

// startSurfaces creates the handlers of the APIs and the console.
func (r *rooms) startSurfaces(context.Context) error {
	s := r.settings
	r.ready = &readiness{database: r.db.Ping, writable: r.ledger.Writable, catalog: r.watcher.Current, media: r.files.Down}
	guesses := r.throttle("admin_token", wrongTokens()) // one throttle for all routes with the token
	public := api.New(api.Options{
		Options: httpapi.Options{Log: r.log, Origins: s.CORSOrigins, Observe: r.metrics.Request, Trace: r.traces},
		Since:   catalog.NewModelTimes(r.db), Keys: r.keys, Catalog: r.watcher, Ledger: r.ledger, Chat: r.chat, Calls: r.calls,
		Responses: r.responses, Jobs: r.jobs, Media: r.files, Guard: r.guard,
		TrustedProxies: s.TrustedProxies, MaxBody: s.MaxBody, BodyMemory: bodyMemory(r.memory),
		CountRate: s.CountTokensPerMinute, PictureWait: s.PictureWait,
		WrongKeys: r.throttle("api_key", r.options.keysAllowed()),
	})
	r.metrics.Endpoints(public.Endpoints())
	return r.openFronts(surfaces{
		api: public,
		admin: admin.New(admin.Options{
			Token: r.token, WrongTokens: guesses, DB: r.db, Keys: r.keys, Passwords: r.passwords,
			PublicURL: r.Base(), Providers: r.providers, Catalog: r.watcher, SecretKeys: s.SecretKeys, Log: r.log,
			Lines: r.lines, Jobs: r.jobs, Webhooks: r.webhooks, Mails: r.mails, Audits: r.audits, Topups: r.topups,
			Invoices: r.invoices, TrustedProxies: s.TrustedProxies,
		}),
		media: r.files.Handler(), payments: r.payments(),
		metrics: r.metrics.Handler(), ready: r.ready, token: r.token, wrong: guesses, proxies: s.TrustedProxies, log: r.log,
		base: r.Base(), signIns: r.signIns,
	}, console.Options{Options: page.Options{
		DB: r.db, ReadLimit: page.NewReadLimit(), Keys: r.keys, Passwords: r.passwords, SignIns: r.sessions, Catalog: r.watcher,
		SecretKeys: s.SecretKeys, ProviderHTTP: provider.NewClient(), Providers: r.providers,
		Lines: r.lines, Jobs: r.jobs, Webhooks: r.webhooks, Mails: r.mails, Audits: r.audits, Ledger: r.ledger,
		LowBalance: s.LowBalance, Topups: r.topups, Invoices: r.invoices, Brand: s.brand(), PublicPrices: s.PublicPrices,
		Legal: s.legal, Availability: r.availability, Announcements: r.announcements,
		SignUps: s.signUps(), Challenge: r.challenge(), Identities: r.identityProviders(),
		Media: r.files, ServeAs: public.ServeAs,
		AdminToken: r.token, PublicURL: r.Base(), NoPublicURL: s.PublicURL == "", MediaURL: r.mediaBase(),
		TrustedProxies: s.TrustedProxies, Log: r.log,
	}})
}

// openFronts creates the handlers of the servers. The operator's pages are served where
// the operator API is.
func (r *rooms) openFronts(parts surfaces, pages console.Options) (err error) {
	files, err := static.Read()
	if err != nil {
		return fmt.Errorf("read the console's files: %w", err)
	}
	if parts.pages, err = contract.NewSite(files.Path, fault.Explain); err != nil {
		return fmt.Errorf("render the reference: %w", err)
	}
	if r.operatorServer != nil {
		public, private := parts.split()
		pages.Sections = console.OperatorSection
		if private.console, err = console.New(pages); err != nil {
			return fmt.Errorf("create the operator's console: %w", err)
		}
		parts, r.operatorHandler = public, newFront(private)
		pages.Sections = console.UserSection
	}
	if parts.console, err = console.New(pages); err != nil {
		return fmt.Errorf("create the console: %w", err)
	}
	r.handler = newFront(parts)
	return nil
}

// signIns reports which people can sign in to the console. If the database is unavailable, it reports
// true, so that the console can show the error.
func (r *rooms) signIns(ctx context.Context) (users, operators bool) {
	ctx, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	err := r.db.View(ctx, func(tx *store.Tx) (err error) {
		users, operators, err = account.SignInsTx(tx)
		return err
	})
	if err != nil {
		r.log.Warn("the start page cannot find out whether anyone can sign in to the console", "error", err)
		return true, true
	}
	return users, operators
}
