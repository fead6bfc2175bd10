package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// nodeLines is a fake of one node's lines. Refresh applies the stored decisions to the states.
type nodeLines struct {
	db    *store.DB
	epoch string

	mu     sync.Mutex
	states []line.Status
	dbErr  error // result of Refresh and Report, if not nil
}

func (n *nodeLines) IDs() []string {
	var ids []string
	for _, state := range n.Statuses() {
		ids = append(ids, state.Line)
	}
	return ids
}

func (n *nodeLines) Statuses(ids ...string) []line.Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.states), func(s line.Status) bool { return len(ids) > 0 && !slices.Contains(ids, s.Line) })
}

func (n *nodeLines) Refresh(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dbErr != nil {
		return n.dbErr
	}
	return n.db.View(ctx, func(tx *store.Tx) error {
		for i, state := range n.states {
			status, err := line.OperatorStatusTx(tx, catalog.LineSpec{ID: state.Line, Enabled: true})
			if err != nil {
				return err
			}
			n.states[i].State = status.State
		}
		return nil
	})
}

func (n *nodeLines) Report(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dbErr != nil {
		return n.dbErr
	}
	raw, err := json.Marshal(n.states)
	if err != nil {
		return err
	}
	return n.db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO line_report (epoch, at_ms, states) VALUES ($1, $2, $3)
			ON CONFLICT (epoch) DO UPDATE SET states = excluded.states`, n.epoch, 1_700_000_000_999, string(raw))
		return err
	})
}

// set changes the states of the node's lines.
func (n *nodeLines) set(states ...line.Status) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.states = states
}

func (n *nodeLines) setErr(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dbErr = err
}

// newNode registers a node with lines and returns the caller of its API and the lines.
func newNode(t *testing.T, db *store.DB, epoch string, states ...line.Status) (*caller, *nodeLines) {
	t.Helper()
	if err := node.Register(t.Context(), db, epoch); err != nil {
		t.Fatal(err)
	}
	n := &nodeLines{db: db, epoch: epoch, states: states}
	return newCaller(t, db, func(o *Options) { o.Lines = n }), n
}

// element returns an element of a list as a reply.
func (r reply) element(i int) reply {
	r.t.Helper()
	all, _ := r.list()
	if i >= len(all) {
		r.t.Fatalf("%s has no element %d", r.body, i)
	}
	raw, _ := json.Marshal(all[i])
	return reply{t: r.t, body: string(raw)}
}

func TestLines(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		for _, query := range []string{"", "?node=all"} {
			if list, more := c.ok("GET", "/lines"+query, "").list(); len(list) != 0 || more {
				t.Errorf("a process without lines listed %v with more %v, want no lines", list, more)
			}
		}
		for query, param := range map[string]string{"?nodes=all": "nodes", "?node=one": "node", "?node=": "node", "?node=all&node=all": "node"} {
			c.do("GET", "/lines"+query, "").wantFault(fault.InvalidRequest, param)
		}

		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		rate, ms := 0.5, int64(30)
		here, a := newNode(t, c.db, "node_a", line.Status{Line: "main", Provider: "test", State: "in_service", InFlight: 1, Attempts: 10,
			SuccessRate: &rate, FirstByteMS: &ms})
		_, b := newNode(t, c.db, "node_b", line.Status{Line: "main", Provider: "test", State: "circuit_open", InFlight: 2,
			CoolingUntil: 1_700_000_030,
			Cause:        "5 failures in a row", CauseAt: 1_700_000_000})
		if err := b.Report(t.Context()); err != nil {
			t.Fatal(err)
		}
		element := here.ok("GET", "/lines", "").element(0)
		element.wantNames("id", "provider", "state", "in_flight", "max_concurrent", "recent_attempts", "success_rate", "first_byte_ms",
			"over_hold_usd")
		element.want(`{"id":"main","state":"in_service","in_flight":1,"success_rate":0.5}`)

		all := here.ok("GET", "/lines?node=all", "").element(0)
		all.wantNames("id", "provider", "state", "cooling_until", "in_flight", "max_concurrent", "recent_attempts", "success_rate",
			"first_byte_ms",
			"cause", "cause_at", "nodes", "over_hold_usd")
		all.want(`{"state":"circuit_open","in_flight":3,"recent_attempts":10,"success_rate":0.5,"first_byte_ms":30,"cause":"5 failures in a ` +
			`row","nodes":[
			{"node":"node_a","host":"` + host + `","at":1700000000,"id":"main","provider":"test","state":"in_service","in_flight":1,
			 "max_concurrent":0,
			 "recent_attempts":10,"success_rate":0.5,"first_byte_ms":30},
			{"node":"node_b","host":"` + host + `","at":1700000000,"id":"main","provider":"test","state":"circuit_open","in_flight":2,
			 "cooling_until":1700000030,"max_concurrent":0,"recent_attempts":0,"success_rate":null,
			 "first_byte_ms":null,"cause":"5 failures in a row","cause_at":1700000000}]}`)

		// The list has a new report of this node, or its previous report if the database fails.
		a.set(line.Status{Line: "main", State: "in_service", InFlight: 5})
		here.ok("GET", "/lines?node=all", "").element(0).want(`{"in_flight":7}`)
		a.set(line.Status{Line: "main", State: "in_service"})
		a.setErr(errors.New("the database is away"))
		here.ok("GET", "/lines?node=all", "").element(0).want(`{"in_flight":7}`)
		if log := here.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "away") {
			t.Errorf("the log is %q, want one line with the error", log)
		}
		// A process without lines lists the reports of all live nodes.
		c.ok("GET", "/lines?node=all", "").element(0).want(`{"in_flight":7}`)
		if _, err := node.Fence(t.Context(), c.db, "node_b", 0); err != nil {
			t.Fatal(err)
		}
		c.ok("GET", "/lines?node=all", "").element(0).want(`{"in_flight":5,"state":"in_service"}`)
	})
}

// TestLinePages checks that pages of lines have all lines in order, and that a list without a limit
// has all lines.
func TestLinePages(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		states := make([]line.Status, 60)
		for i := range states {
			states[i] = line.Status{Line: fmt.Sprintf("line-%d", 60-i), State: "in_service"}
		}
		here, _ := newNode(t, c.db, "node_a", states...)
		for _, node := range []string{"", "&node=all"} {
			if all, more := here.ok("GET", "/lines?"+node, "").list(); len(all) != 60 || more {
				t.Errorf("the list without a limit has %d lines with more %t, want 60", len(all), more)
			}
			var found []string
			for after, more := "", true; more; after = "&after=" + found[len(found)-1] {
				r := here.ok("GET", "/lines?limit=25"+after+node, "")
				var page []map[string]any
				page, more = r.list()
				for i := range page {
					found = append(found, r.element(i).text("id"))
				}
			}
			if len(found) != 60 || found[0] != "line-60" || found[59] != "line-1" {
				t.Errorf("the pages have the lines %v, want line-60 to line-1", found)
			}
			here.do("GET", "/lines?after=gone"+node, "").wantFault(fault.InvalidRequest, "after")
			here.do("GET", "/lines?limit=0"+node, "").wantFault(fault.InvalidRequest, "limit")
		}
	})
}

func TestDrainAndResume(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rate := 0.5
		c, a := newNode(t, db, "node_a", line.Status{Line: "other", State: "in_service"},
			line.Status{Line: "main", Provider: "test", State: "in_service", InFlight: 3, Attempts: 2, SuccessRate: &rate})
		reply := c.do("POST", "/lines/main/drain", "")
		reply.wantFault(fault.NotFound, "")
		c.ok("PUT", "/catalog", document("0.25"))

		// The answer is the line on this node with the decision applied.
		drained := c.ok("POST", "/lines/main/drain", "")
		drained.want(`{"id":"main","provider":"test","state":"drained","in_flight":3,"recent_attempts":2,"success_rate":0.5}`)
		if element := c.ok("GET", "/lines", "").element(1); element.members()["state"] != "drained" {
			t.Errorf("the list has the line %s, want it drained", element.body)
		}
		c.ok("GET", "/lines", "").element(0).want(`{"id":"other","state":"in_service"}`)
		c.ok("POST", "/lines/main/drain", "{}").want(`{"state":"drained"}`)
		c.ok("POST", "/lines/main/resume", " { } ").want(`{"state":"in_service","in_flight":3}`)
		c.ok("POST", "/lines/main/resume", "").want(`{"state":"in_service"}`)

		// In a process without lines, or without this line, the answer is the decision.
		shell := newCaller(t, db)
		out := shell.ok("POST", "/lines/main/drain", "")
		out.wantNames("id", "provider", "state", "in_flight", "max_concurrent", "recent_attempts", "success_rate", "first_byte_ms", "cause")
		out.want(`{"id":"main","provider":"test","state":"drained","cause":"drained by the operator","success_rate":null}`)
		a.set(line.Status{Line: "other", State: "in_service"})
		c.ok("POST", "/lines/main/resume", "").want(`{"id":"main","state":"in_service","in_flight":0}`)
		a.set(line.Status{Line: "main", State: "in_service", InFlight: 3})
		a.setErr(errors.New("the database is away"))
		c.ok("POST", "/lines/main/drain", "").want(`{"state":"drained","in_flight":0}`)
		if log := c.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "line=main") {
			t.Errorf("the log is %q, want one line that names main", log)
		}
		a.setErr(nil)

		for _, action := range []string{"drain", "resume"} {
			r := c.do("POST", "/lines/mian/"+action, "")
			r.wantFault(fault.NotFound, "")
			if !strings.Contains(r.body, `\"mian\"`) || !strings.Contains(r.body, "/admin/v1/catalog") {
				t.Errorf("the message is %s, want it to name mian and /admin/v1/catalog", r.body)
			}
			c.do("POST", "/lines/main/"+action+"?node=all", "").wantFault(fault.InvalidRequest, "node")
			c.do("POST", "/lines/main/"+action, `{"for":"1h"}`).wantFault(fault.InvalidRequest, "for")
			c.do("POST", "/lines/main/"+action, `[]`).wantFault(fault.InvalidRequest, "")
			c.do("POST", "/lines/main/"+action, `{`).wantFault(fault.InvalidJSON, "")
			c.do("POST", "/lines/main/"+action, strings.Repeat(" ", maxBody+1)).wantFault(fault.RequestTooLarge, "")
		}
		if err := a.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := a.Statuses()[0].State; got != "drained" {
			t.Errorf("after the rejected requests the line is %s, want drained", got)
		}
	})
}
