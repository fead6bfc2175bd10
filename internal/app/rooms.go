package app

import (
	"context"
	"fmt"

	"tollgate/internal/account"
	"tollgate/internal/admin"
	"tollgate/internal/alert"
	"tollgate/internal/api"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/since"
	"tollgate/internal/chat"
	"tollgate/internal/console"
	"tollgate/internal/console/page"
	"tollgate/internal/egress"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/job/proof"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/node"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/trace"
	"tollgate/internal/upstream/adapters"
	"tollgate/internal/webhook"
)

// rooms are the parts of the process while New starts them.
type rooms struct {
	*App
	memory    int64 // of the process, in bytes
	providers map[string]catalog.Provider

	traces    *trace.Tracer
	db        *store.DB
	guard     *egress.Guard
	node      *node.Node
	webhooks  *webhook.Webhooks
	ledger    *ledger.Ledger
	keys      *account.Keys
	passwords *account.Passwords
	sessions  *account.Entrance
	lines     *line.Lines
	jobs      *job.Jobs
	chat      *chat.Conductor
	audits    *operator.Audits
}

// list returns the start functions in order. Each one registers its own cleanup (lifecycle), so
// rooms stop in reverse order. Everything before migrate leaves the database as it is.
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
		r.startCatalog,
		r.joinNodes,
		r.startWebhooks,
		r.startKeys,
		r.setUp,
		r.startLines,
		r.startJobs,
		r.startSessions,
		r.startChat,
		r.startAudits,
		r.startSurfaces,
	}
}

func (r *rooms) startTraces(ctx context.Context) (err error) {
	r.traces, err = r.App.startTraces(ctx)
	return err
}

func (r *rooms) checkSettings(context.Context) error {
	if err := checkToken(r.settings); err != nil {
		return err
	}
	return checkUnmade(r.settings, r.providers)
}

func (r *rooms) openDatabase(ctx context.Context) (err error) {
	if r.db, err = r.App.openDatabase(ctx); err != nil {
		return err
	}
	r.metrics.Database(r.db.Connections)
	return nil
}

func (r *rooms) openMedia(ctx context.Context) (err error) {
	if r.files, err = r.App.openMedia(ctx, r.db); err != nil {
		return err
	}
	r.guard = r.openGuard(r.files)
	return nil
}

func (r *rooms) checkFirstStart(ctx context.Context) error {
	return checkFirst(ctx, r.db, r.settings, r.providers)
}

func (r *rooms) migrate(ctx context.Context) error {
	if err := r.App.migrate(ctx, r.db.Migrate, r.db.Ping); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

func (r *rooms) createToken(ctx context.Context) error { return r.makeToken(ctx, r.db) }

func (r *rooms) startCatalog(ctx context.Context) error {
	r.watcher = catalog.NewWatcher(catalog.WatcherOptions{DB: r.db, Providers: r.providers, Lookup: r.options.Lookup, Log: r.log})
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
	r.node, err = node.Join(ctx, node.Options{DB: r.db, Lease: r.settings.NodeLease, Log: r.log})
	if err != nil {
		return fmt.Errorf("register this node: %w", err)
	}
	return nil
}

// startWebhooks starts webhooks and the ledger, because the ledger announces low balances.
func (r *rooms) startWebhooks(ctx context.Context) (err error) {
	s := r.settings
	r.webhooks = webhook.New(webhook.Options{
		DB: r.db, Guard: r.guard, Timeout: s.WebhookTimeout, Retries: s.WebhookRetries, Retention: s.DeliveryRetention,
		Epoch: r.node.Epoch, Log: r.log, Registry: r.metrics.Registry(),
	})
	if r.ledger, err = r.startLedger(ctx, r.db, r.node, r.webhooks); err != nil {
		return err
	}
	r.life.loop("webhook deliveries", r.webhooks.Run)
	return nil
}

func (r *rooms) startKeys(context.Context) error {
	r.keys = account.NewKeys(account.KeysOptions{DB: r.db, Log: r.log, Max: r.settings.KeyCache})
	r.life.later("key cache", func(context.Context) error { r.keys.Close(); return nil })
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
	alerts := alert.New(r.settings.AlertURL, r.log, nil)
	r.life.lingering("alerts", alerts.Run)
	set := adapters.New(adapters.Options{Strangers: r.guard.Transport()})
	r.life.later("credentials of lines", func(context.Context) error { set.Close(); return nil })
	r.lines = line.New(line.Options{
		Open: set.Open, Current: r.watcher.Current, DB: r.db, Epoch: r.node.Epoch,
		Alerts: alerts, Log: r.log, Registry: r.metrics.Registry(),
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
	return nil
}

func (r *rooms) startSessions(context.Context) error {
	r.sessions = account.NewEntrance(r.db, r.passwords, r.log)
	r.life.loop("sessions", r.sessions.Run)
	return nil
}

func (r *rooms) startChat(context.Context) error {
	s := r.settings
	r.chat = chat.New(chat.Options{
		Ledger: r.ledger, Lines: r.lines, Log: r.log,
		RequestTimeout: s.RequestTimeout, MaxAnswer: s.MaxAnswer, AnswerBudget: answerMemory(s, r.memory), ExposeLine: s.ExposeLine,
		RefuseUnknown: s.RefuseUnknownFields,
		FirstToken:    r.metrics.FirstToken,
		UnknownUsage:  r.unknownUsage(),
	})
	return nil
}

func (r *rooms) startAudits(context.Context) error {
	r.audits = operator.NewAudits(r.db, proof.Check(r.jobs.KeptFor()), r.log)
	r.life.loop("audits", r.audits.Run)
	return nil
}

// startSurfaces creates the handlers of the APIs and the console.
func (r *rooms) startSurfaces(context.Context) error {
	s := r.settings
	r.ready = &readiness{database: r.db.Ping, writable: r.ledger.Writable, catalog: r.watcher.Current, media: r.files.Down}
	wrongToken := r.slowGuesses(wrongTokens())
	public := api.New(api.Options{
		Options: httpapi.Options{Log: r.log, Origins: s.CORSOrigins, Observe: r.metrics.Request, Trace: r.traces},
		Since:   since.NewTimes(r.db), Keys: r.keys, Catalog: r.watcher, Ledger: r.ledger, Chat: r.chat,
		Jobs: r.jobs, Media: r.files, Guard: r.guard,
		TrustedProxies: s.TrustedProxies, MaxBody: s.MaxBody, BodyMemory: bodyMemory(r.memory),
		CountRate: s.CountTokensPerMinute,
		WrongKeys: r.throttle("api_key", r.options.keysAllowed()).Wait,
	})
	r.metrics.Endpoints(public.Endpoints())
	return r.openFronts(surfaces{
		api: public,
		admin: admin.New(admin.Options{
			Token: r.token, WrongToken: wrongToken, DB: r.db, Keys: r.keys, Passwords: r.passwords,
			PublicURL: r.Base(), Providers: r.providers, Catalog: r.watcher, Log: r.log,
			Lines: r.lines, Jobs: r.jobs, Webhooks: r.webhooks, Audits: r.audits, TrustedProxies: s.TrustedProxies,
		}),
		media:   r.files.Handler(),
		metrics: r.metrics.Handler(), ready: r.ready, token: r.token, wrong: wrongToken, log: r.log,
		base: r.Base(), enters: r.whoEnters(r.db),
	}, console.Options{
		DB: r.db, ReadLimit: page.NewReadLimit(), Keys: r.keys, Passwords: r.passwords, Entrance: r.sessions, Catalog: r.watcher,
		Providers: r.providers, Lines: r.lines, Jobs: r.jobs, Webhooks: r.webhooks, Audits: r.audits, Writable: r.ledger.Writable,
		Media: r.files, ServeAs: public.ServeAs,
		AdminToken: r.token, PublicURL: r.Base(), NoPublicURL: s.PublicURL == "", MediaURL: r.mediaBase(),
		TrustedProxies: s.TrustedProxies, Log: r.log,
	})
}
