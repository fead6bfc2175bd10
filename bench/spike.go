package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/internal/store/id"
)

// spike is a minimal ledger: a hold inserts a row, and a settlement deletes the row and inserts a
// receipt. Both update the account's row. It has no checks, windows, totals or recovery. One
// goroutine commits all waiting operations in one transaction. The spike shows the limit of the
// machine and the database.
type spike struct {
	queue        chan *spikeOp
	stopped      chan struct{}
	write        func(ctx context.Context, ops []*spikeOp) error
	release      func() error
	accounts     []string
	transactions atomic.Int64
	operations   atomic.Int64
}

// spikeOp is one hold or one settlement.
type spikeOp struct {
	request, account string
	settle           bool
	done             chan error
}

// Amounts in nano-dollars, and the size of a transaction.
const (
	spikeHold  = 10_000_000
	spikeCost  = 1_234_567
	spikeBatch = 256 // maximum of operations in a transaction
)

var spikeSchema = []string{
	`CREATE TABLE spike_account (id TEXT PRIMARY KEY, balance_nano BIGINT NOT NULL, held_nano BIGINT NOT NULL)`,
	`CREATE TABLE spike_hold (id TEXT PRIMARY KEY, account TEXT NOT NULL, amount_nano BIGINT NOT NULL)`,
	`CREATE TABLE spike_receipt (id TEXT PRIMARY KEY, account TEXT NOT NULL, cost_nano BIGINT NOT NULL, ended_ms BIGINT NOT NULL)`,
}

const (
	spikeInsertHold    = `INSERT INTO spike_hold (id, account, amount_nano) VALUES ($1, $2, $3)`
	spikeDeleteHold    = `DELETE FROM spike_hold WHERE id = $1`
	spikeInsertReceipt = `INSERT INTO spike_receipt (id, account, cost_nano, ended_ms) VALUES ($1, $2, $3, $4)`
	spikeUpdateAccount = `UPDATE spike_account SET balance_nano = balance_nano + $1, held_nano = held_nano + $2 WHERE id = $3`
)

// openSpike creates the spike's tables and starts its committing goroutine.
func openSpike(ctx context.Context, url string, accounts int) (*spike, error) {
	s := &spike{queue: make(chan *spikeOp, 4*spikeBatch), stopped: make(chan struct{})}
	name, source := "pgx", url
	path, lite := strings.CutPrefix(url, "sqlite:")
	if lite {
		name, source = "sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	}
	db, err := sql.Open(name, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, text := range spikeSchema {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	for range accounts {
		account := id.New("acct_")
		s.accounts = append(s.accounts, account)
		if _, err := db.ExecContext(ctx, `INSERT INTO spike_account (id, balance_nano, held_nano) VALUES ($1, $2, 0)`, account,
			int64(1e18)); err != nil {
			return nil, err
		}
	}
	if lite {
		err = s.writeSQLite(ctx, db)
	} else {
		err = s.writePostgreSQL(ctx, db, url)
	}
	if err != nil {
		return nil, err
	}
	go s.commit(ctx)
	return s, nil
}

// commit writes the queued operations in groups until the queue is closed.
func (s *spike) commit(ctx context.Context) {
	defer close(s.stopped)
	for first := range s.queue {
		ops := []*spikeOp{first}
		for len(ops) < spikeBatch {
			select {
			case op, open := <-s.queue:
				if open {
					ops = append(ops, op)
					continue
				}
			default:
			}
			break
		}
		err := s.write(ctx, ops)
		s.transactions.Add(1)
		s.operations.Add(int64(len(ops)))
		for _, op := range ops {
			op.done <- err
		}
	}
}

// change is the effect of a group of operations on one account.
type change struct{ balance, held int64 }

// changes returns the sum of a group's changes by account.
func changes(ops []*spikeOp) map[string]change {
	sums := map[string]change{}
	for _, op := range ops {
		c := sums[op.account]
		if op.settle {
			c.balance -= spikeCost
			c.held -= spikeHold
		} else {
			c.held += spikeHold
		}
		sums[op.account] = c
	}
	return sums
}

// writeSQLite sets write to a function with prepared statements on the driver's own connection.
func (s *spike) writeSQLite(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	s.release = func() error {
		conn.Close()
		return db.Close()
	}
	prepared := map[string]driver.StmtExecContext{}
	exec := func(raw driver.Conn, text string, args ...any) error {
		stmt, ok := prepared[text]
		if !ok {
			p, err := raw.Prepare(text)
			if err != nil {
				return err
			}
			if stmt, ok = p.(driver.StmtExecContext); !ok {
				return fmt.Errorf("the driver's statement %T takes no context", p)
			}
			prepared[text] = stmt
		}
		named := make([]driver.NamedValue, len(args))
		for i, arg := range args {
			named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
		}
		_, err := stmt.ExecContext(ctx, named)
		return err
	}
	s.write = func(_ context.Context, ops []*spikeOp) error {
		return conn.Raw(func(c any) error {
			raw, ok := c.(driver.Conn)
			if !ok {
				return fmt.Errorf("unknown connection %T", c)
			}
			if err := exec(raw, `BEGIN IMMEDIATE`); err != nil {
				return err
			}
			for _, op := range ops {
				if !op.settle {
					if err := exec(raw, spikeInsertHold, op.request, op.account, int64(spikeHold)); err != nil {
						return err
					}
					continue
				}
				if err := exec(raw, spikeDeleteHold, op.request); err != nil {
					return err
				}
				if err := exec(raw, spikeInsertReceipt, op.request, op.account, int64(spikeCost), time.Now().UnixMilli()); err != nil {
					return err
				}
			}
			for account, c := range changes(ops) {
				if err := exec(raw, spikeUpdateAccount, c.balance, c.held, account); err != nil {
					return err
				}
			}
			return exec(raw, `COMMIT`)
		})
	}
	return nil
}

// writePostgreSQL sets write to a function that pipelines a whole transaction in one round trip.
func (s *spike) writePostgreSQL(ctx context.Context, db *sql.DB, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	s.release = func() error {
		if err := conn.Close(ctx); err != nil {
			return err
		}
		return db.Close()
	}
	s.write = func(ctx context.Context, ops []*spikeOp) error {
		b := &pgx.Batch{}
		b.Queue(`BEGIN`)
		for _, op := range ops {
			if !op.settle {
				b.Queue(spikeInsertHold, op.request, op.account, int64(spikeHold))
				continue
			}
			b.Queue(spikeDeleteHold, op.request)
			b.Queue(spikeInsertReceipt, op.request, op.account, int64(spikeCost), time.Now().UnixMilli())
		}
		for account, c := range changes(ops) {
			b.Queue(spikeUpdateAccount, c.balance, c.held, account)
		}
		b.Queue(`COMMIT`)
		return conn.SendBatch(ctx, b).Close()
	}
	return nil
}

func (s *spike) pair(_ context.Context, account int) (time.Duration, error) {
	op := &spikeOp{request: id.New("req_"), account: s.accounts[account], done: make(chan error, 1)}
	began := time.Now()
	s.queue <- op
	if err := <-op.done; err != nil {
		return 0, err
	}
	held := time.Since(began)
	op.settle = true
	s.queue <- op
	return held, <-op.done
}

func (s *spike) batches() (int64, int64) { return s.transactions.Load(), s.operations.Load() }

func (s *spike) close() error {
	close(s.queue)
	<-s.stopped
	return s.release()
}
