package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// nodeAccounts are the numbers of accounts of benchNodes. Each pair is of a random account.
var nodeAccounts = []int{1, 150}

// nodesResult is the result of one measurement of several nodes on one database.
type nodesResult struct {
	rate    float64 // pairs per second of all nodes
	refused float64 // share of the admissions
}

// benchNodes prints pairs of hold and settlement per second for nodes that share one PostgreSQL
// database, with a delay in each commit. A synchronous standby in another region delays a commit in
// the same way: the transaction keeps its locks.
func benchNodes(o options) error {
	if o.postgres == "" {
		log.Print("nodes: only PostgreSQL serves several nodes")
		return nil
	}
	fmt.Printf("### Nodes on one PostgreSQL database: hold and settle\n\n")
	out := newTable("accounts", "commit delay", "nodes", "callers", "pairs/s", "of one node", "refused %")
	defer out.print()
	for _, accounts := range nodeAccounts {
		for _, ms := range o.delays {
			delay := time.Duration(ms) * time.Millisecond
			var one float64
			for _, nodes := range o.nodes {
				for _, callers := range slices.Compact([]int{o.callers, o.callers * nodes}) {
					var all []nodesResult
					for range o.rounds {
						s, err := measureNodes(o, nodes, callers, accounts, delay)
						if err != nil {
							return fmt.Errorf("%d nodes, %d accounts, %s: %w", nodes, accounts, delay, err)
						}
						all = append(all, s)
					}
					rate := median(all, func(s nodesResult) float64 { return s.rate })
					if nodes == 1 {
						one = rate
					}
					out.add(fmt.Sprint(accounts), delay.String(), fmt.Sprint(nodes), fmt.Sprint(callers), fmt.Sprintf("%.0f", rate),
						fmt.Sprintf("%.2f", rate/one), fmt.Sprintf("%.1f", 100*median(all, func(s nodesResult) float64 { return s.refused })))
				}
			}
		}
	}
	return nil
}

// measureNodes runs callers on all nodes against a fresh database.
func measureNodes(o options, nodes, callers, accounts int, delay time.Duration) (s nodesResult, err error) {
	ctx := context.Background()
	url, drop, err := freshDatabase(ctx, o, "PostgreSQL")
	if err != nil {
		return nodesResult{}, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return nodesResult{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return nodesResult{}, err
	}
	names, err := openAccounts(ctx, db, accounts)
	if err != nil {
		return nodesResult{}, err
	}
	if err := delayCommits(ctx, db, delay); err != nil {
		return nodesResult{}, err
	}
	all := make([]*ledgerSubject, nodes)
	for i := range all {
		if all[i], err = joinLedger(ctx, url, names, store.Options{}); err != nil {
			return nodesResult{}, err
		}
	}
	for _, span := range []time.Duration{o.span / 4, o.span} { // the first warms up
		if s, err = runNodes(ctx, all, callers, span); err != nil {
			return nodesResult{}, err
		}
	}
	for _, node := range all {
		if err := node.leave(ctx); err != nil {
			return nodesResult{}, err
		}
	}
	report, err := audit.Run(ctx, db)
	if err == nil && !report.OK {
		err = fmt.Errorf("the books do not agree: %+v", report.Differences)
	}
	return s, err
}

// delayCommits delays the commit of each batch, before the transaction gives up its locks.
func delayCommits(ctx context.Context, db *store.DB, delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		for _, text := range []string{
			fmt.Sprintf(`CREATE FUNCTION bench_delay() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN PERFORM pg_sleep(%f); RETURN NULL; END $$`, delay.Seconds()),
			`CREATE CONSTRAINT TRIGGER bench_delay AFTER INSERT ON node_batch DEFERRABLE INITIALLY DEFERRED
				FOR EACH ROW EXECUTE FUNCTION bench_delay()`,
		} {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		return nil
	})
}

// runNodes makes pairs for a span. The callers are divided among the nodes. A refused admission is
// tried again at once.
func runNodes(ctx context.Context, nodes []*ledgerSubject, callers int, span time.Duration) (nodesResult, error) {
	var pairs, refused atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	start := time.Now()
	for i := range callers {
		node := nodes[i%len(nodes)]
		wg.Go(func() {
			for time.Since(start) < span && failed.Load() == nil {
				_, err := node.pair(ctx, rand.N(len(node.accounts)))
				switch {
				case err == nil:
					pairs.Add(1)
				case fault.Of(err).Code == fault.ServiceUnavailable:
					refused.Add(1)
				default:
					failed.Store(&err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nodesResult{}, *err
	}
	done, refusedPairs := float64(pairs.Load()), float64(refused.Load())
	return nodesResult{rate: done / time.Since(start).Seconds(), refused: refusedPairs / max(1, done+refusedPairs)}, nil
}
