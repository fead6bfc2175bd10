package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// subject is the system under test: the ledger or the spike.
type subject interface {
	// pair makes one hold, settles it, and returns the duration of the hold.
	pair(ctx context.Context, account int) (hold time.Duration, err error)
	// batches returns the number of committed transactions so far, and of their operations.
	batches() (transactions, operations int64)
	close() error
}

// pairs is the result of one measurement.
type pairs struct {
	pairs    int
	rate     float64       // pairs per second
	cpu      time.Duration // CPU time of this process per pair
	server   time.Duration // CPU time of PostgreSQL's processes per pair
	hold50   time.Duration
	hold99   time.Duration
	pair50   time.Duration
	perBatch float64 // operations per transaction
}

// benchLedger prints pairs of hold and settlement per second, for the ledger and the spike.
func benchLedger(o options) error {
	fmt.Printf("### Ledger: hold and settle, %d callers\n\n", o.callers)
	out := newTable("database, accounts", "subject", "pairs/s", "CPU us/pair", "server's", "hold p50 ms", "hold p99 ms", "pair p50 ms",
		"operations/commit")
	err := o.onEngines(func(engine string) error {
		for _, accounts := range o.accounts {
			results := map[string][]pairs{}
			for range o.rounds {
				for _, name := range []string{"tollgate", "spike"} {
					p, err := measurePairs(o, engine, name, accounts)
					if err != nil {
						return fmt.Errorf("%s, %d accounts: %w", name, accounts, err)
					}
					results[name] = append(results[name], p)
				}
			}
			for _, name := range []string{"tollgate", "spike"} {
				all := results[name]
				out.add(fmt.Sprintf("%s, %d", engine, accounts), name,
					fmt.Sprintf("%.0f", median(all, func(p pairs) float64 { return p.rate })),
					fmt.Sprintf("%.0f", float64(median(all, func(p pairs) time.Duration { return p.cpu }))/1e3),
					fmt.Sprintf("%.0f", float64(median(all, func(p pairs) time.Duration { return p.server }))/1e3),
					millis(median(all, func(p pairs) time.Duration { return p.hold50 })),
					millis(median(all, func(p pairs) time.Duration { return p.hold99 })),
					millis(median(all, func(p pairs) time.Duration { return p.pair50 })),
					fmt.Sprintf("%.0f", median(all, func(p pairs) float64 { return p.perBatch })))
			}
		}
		return nil
	})
	out.print()
	fmt.Print("CPU is the CPU time of this process. The server's is of PostgreSQL's processes for this database, and of its writers.\n\n")
	return err
}

// measurePairs runs one subject on a fresh database.
func measurePairs(o options, engine, name string, accounts int) (p pairs, err error) {
	ctx := context.Background()
	url, drop, err := freshDatabase(ctx, o, engine)
	if err != nil {
		return pairs{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	var s subject
	if name == "spike" {
		s, err = openSpike(ctx, url, accounts)
	} else {
		s, err = openLedger(ctx, url, accounts, store.Options{})
	}
	if err != nil {
		return pairs{}, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if _, err := runPairs(ctx, s, o.callers, accounts, o.span/4); err != nil { // warm up
		return pairs{}, err
	}
	before, err := serverCPU(ctx, url)
	if err != nil {
		return pairs{}, err
	}
	if p, err = runPairs(ctx, s, o.callers, accounts, o.span); err != nil {
		return pairs{}, err
	}
	after, err := serverCPU(ctx, url)
	p.server = (after - before) / time.Duration(p.pairs)
	return p, err
}

// serverCPU returns the processor time of the PostgreSQL processes that serve the database at url,
// and of those that write for all databases. The server must run on this machine. SQLite has no
// such processes.
func serverCPU(ctx context.Context, url string) (sum time.Duration, err error) {
	if strings.HasPrefix(url, "sqlite:") {
		return 0, nil
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	rows, err := conn.Query(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
		OR backend_type IN ('walwriter', 'checkpointer', 'background writer')`)
	if err != nil {
		return 0, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	for _, pid := range pids {
		used, err := cpu(pid)
		if err != nil {
			return 0, fmt.Errorf("the processor time of PostgreSQL: %w", err)
		}
		sum += used
	}
	return sum, err
}

// runPairs makes pairs with all callers for a span.
func runPairs(ctx context.Context, s subject, callers, accounts int, span time.Duration) (pairs, error) {
	type caller struct{ hold, pair []time.Duration }
	all := make([]caller, callers)
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	cpuBefore, err := ownCPU()
	if err != nil {
		return pairs{}, err
	}
	transactions, operations := s.batches()
	start := time.Now()
	for i := range all {
		wg.Go(func() {
			for n := i; time.Since(start) < span && failed.Load() == nil; n += callers {
				began := time.Now()
				hold, err := s.pair(ctx, n%accounts)
				if err != nil {
					failed.Store(&err)
					return
				}
				all[i].hold = append(all[i].hold, hold)
				all[i].pair = append(all[i].pair, time.Since(began))
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := failed.Load(); err != nil {
		return pairs{}, *err
	}
	cpuAfter, err := ownCPU()
	if err != nil {
		return pairs{}, err
	}
	var hold, pair []time.Duration
	for _, c := range all {
		hold, pair = append(hold, c.hold...), append(pair, c.pair...)
	}
	if len(pair) == 0 {
		return pairs{}, fmt.Errorf("no pair within %s", span)
	}
	slices.Sort(hold)
	slices.Sort(pair)
	transactionsAfter, operationsAfter := s.batches()
	return pairs{
		pairs:    len(pair),
		rate:     float64(len(pair)) / took.Seconds(),
		cpu:      (cpuAfter - cpuBefore) / time.Duration(len(pair)),
		hold50:   percentile(hold, 0.50),
		hold99:   percentile(hold, 0.99),
		pair50:   percentile(pair, 0.50),
		perBatch: float64(operationsAfter-operations) / float64(max(1, transactionsAfter-transactions)),
	}, nil
}

// ownCPU returns the processor time of this process.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// freshDatabase creates an empty database and returns its address and a function that drops it.
func freshDatabase(ctx context.Context, o options, engine string) (url string, drop func() error, err error) {
	if engine == "SQLite" {
		folder, err := os.MkdirTemp(o.folder, "sqlite-")
		return "sqlite:" + filepath.Join(folder, "bench.db"), func() error { return os.RemoveAll(folder) }, err
	}
	admin, err := sql.Open("pgx", o.postgres)
	if err != nil {
		return "", nil, err
	}
	name := strings.ToLower(id.New("bench_"))
	if _, err := admin.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		return "", nil, err
	}
	drop = func() error {
		_, err := admin.ExecContext(context.WithoutCancel(ctx), `DROP DATABASE `+name+` WITH (FORCE)`)
		admin.Close()
		return err
	}
	return strings.Replace(o.postgres, "/postgres?", "/"+name+"?", 1), drop, nil
}

// ledgerSubject is the ledger as a subject.
type ledgerSubject struct {
	db           *store.DB
	ledger       *ledger.Ledger
	now          func() time.Time // of the ids and arrivals
	attempts     any              // of each request
	accounts     []string
	transactions atomic.Int64
	operations   atomic.Int64
}

// openLedger opens a ledger with accounts.
func openLedger(ctx context.Context, url string, accounts int, opts store.Options) (*ledgerSubject, error) {
	db, err := store.Open(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx); err != nil {
		return nil, err
	}
	names, err := openAccounts(ctx, db, accounts)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return joinLedger(ctx, url, names, opts)
}

// joinLedger starts a node on a database with open accounts.
func joinLedger(ctx context.Context, url string, accounts []string, opts store.Options) (*ledgerSubject, error) {
	db, err := store.Open(ctx, url, opts)
	if err != nil {
		return nil, err
	}
	self, err := node.Join(ctx, node.Options{DB: db})
	if err != nil {
		return nil, err
	}
	b := &ledgerSubject{db: db, accounts: accounts, now: time.Now}
	b.ledger = ledger.New(ledger.Options{
		DB:        db,
		Node:      self,
		Log:       slog.New(slog.DiscardHandler),
		QueueWait: 10 * time.Second,
		Observer: ledger.Observer{Batch: func(operations int, _ time.Duration) {
			b.transactions.Add(1)
			b.operations.Add(int64(operations))
		}},
	})
	return b, b.ledger.Start(ctx)
}

// openAccounts opens accounts. Each account has a balance and a key with every limit set, so that
// every check runs.
func openAccounts(ctx context.Context, db *store.DB, accounts int) (names []string, err error) {
	rpm, budget, total := int64(1_000_000_000), 1_000_000*money.USD, 10_000_000*money.USD
	limits := ledger.KeyLimits{RPM: &rpm, DailyBudget: &budget, TotalLimit: &total}
	err = db.Update(ctx, func(tx *store.Tx) error {
		names = nil
		for range accounts {
			account := id.New("acct_")
			names = append(names, account)
			if err := ledger.OpenAccountTx(tx, account, 0); err != nil {
				return err
			}
			if _, err := ledger.CreditTx(tx, account, 100_000*money.USD, "bench"); err != nil {
				return err
			}
			if err := ledger.OpenKeyTx(tx, "key_"+account, account, limits); err != nil {
				return err
			}
		}
		return nil
	})
	return names, err
}

func (b *ledgerSubject) pair(ctx context.Context, account int) (time.Duration, error) {
	began := time.Now()
	hold, err := b.ledger.Admit(ctx, ledger.Admission{
		Request: id.At("req_", b.now()), Account: b.accounts[account], Key: "key_" + b.accounts[account], KeyVersion: 1,
		Model: "swift-1", Endpoint: "/v1/chat/completions", Amount: 10_000_000, Revision: 1, Received: b.now(),
	})
	if err != nil {
		return 0, err
	}
	held := time.Since(began)
	return held, hold.Settle(ctx, ledger.End{
		Outcome: ledger.Billed, Cost: 1_234_567, Tokens: ledger.Tokens{Prompt: 100, Completion: 50},
		Status: 200, Line: "main", FirstByte: held, Duration: held, Attempts: b.attempts,
	})
}

func (b *ledgerSubject) batches() (int64, int64) { return b.transactions.Load(), b.operations.Load() }

func (b *ledgerSubject) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.ledger.Close(ctx); err != nil {
		return err
	}
	report, err := audit.Run(ctx, b.db)
	if err != nil {
		return err
	}
	if !report.OK {
		return fmt.Errorf("the books do not agree: %+v", report.Differences)
	}
	return b.db.Close()
}

// leave ends the node.
func (b *ledgerSubject) leave(ctx context.Context) error {
	return errors.Join(b.ledger.Close(ctx), b.db.Close())
}
