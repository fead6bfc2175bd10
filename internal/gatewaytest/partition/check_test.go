package partition

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// soon waits until condition returns true and reports whether it did within a minute. Unlike
// scene.Eventually, soon does not end the test, so that a run shows all faults.
func soon(t testing.TB, what string, condition func() bool) bool {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if time.Now().After(deadline) {
			t.Errorf("not within a minute: %s", what)
			return false
		}
		<-tick.C
	}
	return true
}

// check opens all connections, waits until everything has ended, and compares the gateway's books
// with the clients' records:
//   - No error was charged.
//   - Every complete answer was charged once, with its cost.
//   - An incomplete answer was charged only if it broke off or the client got no first byte.
//   - Nothing is on hold, the audit finds no difference, and no COMMIT was canceled.
//   - The holds of a node killed after the check are released.
func (c *cluster) check() {
	c.t.Helper()
	c.checkBooks()
	c.checkSweep()
	if c.t.Failed() {
		for i, n := range c.nodes {
			c.t.Logf("node %d:\n%s", i, tail(n.Output()))
		}
	}
}

// checkBooks is like check, but kills no node.
func (c *cluster) checkBooks() {
	t := c.t
	t.Helper()
	for _, n := range c.nodes {
		n.proxy.Disarm()
		n.proxy.Open()
	}
	for i, n := range c.nodes { // the next request makes a node notice that it was declared dead
		soon(t, fmt.Sprintf("node %d answers", i), func() bool {
			return n.ready() && c.probe.send(t.Context(), n, false, fateFine).outcome() == outcomeComplete
		})
	}
	for _, s := range c.jobs {
		s.Process = c.nodes[0].Process // the process may have been restarted
		c.settleOrders(s)
	}
	if !soon(t, "nothing is held", func() bool { return c.held() == 0 }) {
		t.Logf("held: %s", c.dump(`SELECT id || ' of ' || epoch || CASE job WHEN '' THEN '' ELSE ' for ' || job END FROM ledger_hold`))
	}
	for _, a := range c.chats {
		c.checkChats(a)
	}
	for _, s := range c.jobs {
		c.checkOrders(s)
	}
	c.audit()
	c.checkCancels()
}

// checkCancels checks that no node canceled a COMMIT.
func (c *cluster) checkCancels() {
	c.t.Helper()
	for i, n := range c.nodes {
		if cancels := n.proxy.Cancels(); cancels.Commits > 0 {
			c.t.Errorf("node %d sent %d cancel requests for a running COMMIT", i, cancels.Commits)
		}
	}
}

// tail returns the end of a log.
func tail(log string) string { return log[max(0, len(log)-6000):] }

// ready reports whether the node's /readyz answers 200.
func (n *node) ready() bool {
	res, err := n.Client.Get(n.URL + "/readyz")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// dump returns the rows of a query with one text column.
func (c *cluster) dump(query string) (all []string) {
	rows, err := c.db.QueryContext(c.t.Context(), query)
	if err != nil {
		return []string{err.Error()}
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return append(all, err.Error())
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		all = append(all, err.Error())
	}
	return all
}

// requestLog returns the request log of an account and the sum of its charges.
func (c *cluster) requestLog(account string) (rows map[string]scene.Receipt, total money.Amount) {
	t := c.t
	t.Helper()
	rows, total = c.nodes[0].RequestLog(t, account)
	state := c.nodes[0].FundsOf(account)
	if state.Balance != creditUSD*money.USD-total || state.Held != 0 {
		t.Errorf("account %s: balance %s and %s held; want %d less charges of %s, and nothing held",
			account, state.Balance, state.Held, creditUSD, total)
	}
	return rows, total
}

// checkChats compares a client's calls with the request log.
func (c *cluster) checkChats(a *chatClient) {
	t := c.t
	t.Helper()
	rows, _ := c.requestLog(a.account)
	providerCalls := map[string]int{} // by the tag of the call
	for _, r := range c.provider.Requests() {
		if m := chatText.FindSubmatch(r.Body); m != nil {
			providerCalls[string(m[1])]++
		}
	}
	counts, codes := map[string]int{}, map[string]int{}
	var maxCost money.Amount
	for _, call := range a.calls {
		outcome := call.outcome()
		counts[outcome]++
		if outcome == outcomeError {
			codes[call.answer.Err.Code]++
		}
		maxCost = max(maxCost, call.cost)
		r, logged := rows[call.answer.ID]
		delete(rows, call.answer.ID)
		if problem := checkCharge(call, r, logged); problem != "" {
			t.Errorf("%s\n  call %s\n  receipt %+v (found: %t)", problem, call, r, logged)
		}
		if call.fate != fateFails && call.fate != fateBreaks && providerCalls[call.tag] > 1 {
			t.Errorf("%s ran %d times", call, providerCalls[call.tag])
		}
	}
	extra := 0
	for _, r := range rows { // requests whose clients got no first byte
		if r.Cost > 0 {
			extra++
		}
		if r.Cost > maxCost {
			t.Errorf("the charge is above the cost of every answer: %+v", r)
		}
	}
	if extra > counts[outcomeNone] {
		t.Errorf("%d charges for requests without an answer, but only %d clients got no answer", extra, counts[outcomeNone])
	}
	t.Logf("chat: %v %v, %d charged without a first byte for the client", counts, codes, extra)
}

// checkCharge returns the error in the charge of a call, or an empty string.
func checkCharge(call *chatCall, r scene.Receipt, logged bool) string {
	switch outcome := call.outcome(); {
	case outcome == outcomeComplete && (!logged || r.Cost != call.cost || r.Status != http.StatusOK):
		return fmt.Sprintf("a complete answer was not charged its cost of %s", call.cost)
	case outcome == outcomeError && r.Cost != 0:
		return "an error was charged"
	case uncharged(call.answer.Err.Message) && r.Cost != 0:
		return "a client was charged although the error says otherwise"
	case outcome == outcomeCut && !call.stream && r.Cost != 0 && r.Cost != call.cost:
		return fmt.Sprintf("an answer that costs %s was charged another amount", call.cost)
	case r.Cost > call.cost:
		return fmt.Sprintf("the charge is above the cost of %s", call.cost)
	}
	return ""
}

// settleOrders repeats submissions with an unknown outcome, and waits until every job of the
// account has ended.
func (c *cluster) settleOrders(s *jobClient) {
	t := c.t
	t.Helper()
	for _, o := range s.orders {
		c.settleOrder(s, o)
	}
	soon(t, "every job has ended", func() bool {
		return !slices.ContainsFunc(s.JobsOf(t, s.ID), func(j scene.OperatorJob) bool { return !j.Final() })
	})
}

// settleOrder submits an order until the client knows the outcome.
func (c *cluster) settleOrder(s *jobClient, o *jobOrder) {
	c.t.Helper()
	soon(c.t, "a submission is answered: "+o.tag, func() bool {
		if !o.settled() {
			s.submit(c.nodes[0], o)
		}
		return o.settled()
	})
}

// checkOrders compares a client's orders with the jobs and the request log.
func (c *cluster) checkOrders(s *jobClient) {
	t := c.t
	t.Helper()
	jobs := map[string]scene.OperatorJob{}
	for _, j := range s.JobsOf(t, s.ID) {
		jobs[j.ID] = j
	}
	_, total := c.requestLog(s.ID)
	var sum money.Amount
	counts := map[string]int{}
	owner := map[string]string{}
	for _, o := range s.orders {
		submissions := 0
		for _, sub := range c.studio.Submissions() {
			if bytes.Contains(sub.Body, []byte(o.tag+".")) {
				submissions++
			}
		}
		if o.id == "" {
			counts["refused"]++
			if submissions > 0 {
				t.Errorf("the client was told that there is no job, but the provider got %d submissions: %s", submissions, o)
			}
			continue
		}
		if other, twice := owner[o.id]; twice {
			t.Errorf("%s and %s are the same job", other, o.tag)
		}
		owner[o.id] = o.tag
		j, found := jobs[o.id]
		delete(jobs, o.id)
		job, err := s.pollFinal(o)
		switch {
		case !found || err != nil:
			t.Errorf("%s: job found %t, %v", o, found, err)
		case j.Status == "succeeded" && (j.Cost != scene.PricePicture || o.unsafe || submissions == 0):
			t.Errorf("%s: cost %s after %d submissions: %s", o, j.Cost, submissions, job.Raw)
		case j.Status != "succeeded" && j.Cost != 0:
			t.Errorf("%s: failed, but was charged %s: %s", o, j.Cost, job.Raw)
		}
		counts[j.Status]++
		sum += j.Cost
	}
	for _, j := range jobs {
		if j.Cost != 0 || j.Status == "succeeded" {
			t.Errorf("job %s has no order, but is %s and costs %s: %s", j.ID, j.Status, j.Cost, j)
		}
		counts["without an order"]++
	}
	if total != sum {
		t.Errorf("%s were charged for jobs that cost %s", total, sum)
	}
	t.Logf("jobs: %v", counts)
}

// checkSweep kills two nodes: the first node, without holds, and a new node with a running request. Before
// it nothing is held. Then it waits until another node releases the hold.
func (c *cluster) checkSweep() {
	t := c.t
	t.Helper()
	last := c.join()
	c.provider.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Reply{Before: fakeprovider.Stall} })
	var done <-chan *chatCall
	soon(t, "the last request is admitted", func() bool {
		if done == nil || len(done) > 0 { // the last request was rejected, for example under overload
			done = c.probe.start(last, false, fateFine)
		}
		return c.held() > 0
	})
	c.nodes[0].Kill()
	last.Kill()
	<-done
	if !soon(t, "the node that died last is swept", func() bool { return c.held() == 0 }) {
		t.Logf("nodes: %s", c.dump(`SELECT epoch || ' dead ' || dead FROM node`))
	}
}

// settles reports whether a COMMIT settles a request.
func settles(c faultproxy.Commit) bool {
	return c.Has("INSERT INTO ledger_receipt") && c.Has("DELETE FROM ledger_hold")
}

// admits reports whether a COMMIT admits a request.
func admits(c faultproxy.Commit) bool { return c.Has("INSERT INTO ledger_hold") }

// submits reports whether a COMMIT submits a job.
func submits(c faultproxy.Commit) bool { return c.Has("INSERT INTO job") }
