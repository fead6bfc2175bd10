package line

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"tollgate/internal/line/health"
	"tollgate/internal/node"
	"tollgate/internal/store"
)

// Report is a node's last report of its lines.
type Report struct {
	Epoch    string // epoch of the node
	Host     string // the node's host name; empty if unknown
	AtMS     int64  // time of the report in Unix milliseconds
	Statuses []Status
}

// reportTx replaces this node's report of its lines.
func reportTx(tx *store.Tx, epoch string, states []Status) error {
	now, err := tx.NowMS()
	if err != nil {
		return fmt.Errorf("report the lines: %w", err)
	}
	raw, err := json.Marshal(states)
	if err != nil {
		return fmt.Errorf("report the lines: %w", err)
	}
	if _, err = tx.Exec(`INSERT INTO line_report (epoch, at_ms, states) VALUES ($1, $2, $3)
		ON CONFLICT (epoch) DO UPDATE SET at_ms = excluded.at_ms, states = excluded.states`, epoch, now, string(raw)); err != nil {
		return fmt.Errorf("report the lines: %w", err)
	}
	return nil
}

// ReportsTx returns the last report of each living node, in the order of the nodes' starts. A node
// that has not reported yet is missing.
func ReportsTx(tx *store.Tx) (reports []Report, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the reports about lines: %w", err)
		}
	}()
	nodes, err := node.MembersTx(tx)
	if err != nil {
		return nil, err
	}
	hosts, err := node.HostsTx(tx)
	if err != nil {
		return nil, err
	}
	err = tx.Each(func(row store.Row) error {
		var r Report
		var raw string
		if err := row.Scan(&r.Epoch, &r.AtMS, &raw); err != nil || !nodes.Lives(r.Epoch) {
			return err
		}
		r.Host = hosts[r.Epoch]
		if err := json.Unmarshal([]byte(raw), &r.Statuses); err != nil {
			return fmt.Errorf("node %s: %w", r.Epoch, err)
		}
		reports = append(reports, r)
		return nil
	}, `SELECT epoch, at_ms, states FROM line_report ORDER BY epoch`)
	return reports, err
}

// forgetReportsTx deletes the reports of dead nodes. It reads the reports before the nodes, because
// a node registers before its first report. So a node that starts meanwhile keeps its report.
func forgetReportsTx(tx *store.Tx) error {
	epochs, err := store.Column[string](tx, `SELECT epoch FROM line_report`)
	if err != nil {
		return err
	}
	nodes, err := node.MembersTx(tx)
	if err != nil {
		return err
	}
	dead := slices.DeleteFunc(epochs, nodes.Lives)
	if len(dead) == 0 {
		return nil
	}
	_, err = tx.Exec(`DELETE FROM line_report WHERE `+tx.In("epoch", 1), store.List(dead))
	return err
}

// CombinedStatus is the state of a line over all nodes.
type CombinedStatus struct {
	Status
	// Nodes are the states reported by the nodes, in the order of the reports.
	Nodes []OnNode `json:"nodes"`
}

// OnNode is the state of a line on one node.
type OnNode struct {
	Node string `json:"node"`           // the node's epoch
	Host string `json:"host,omitempty"` // the node's host name
	At   int64  `json:"at"`             // time of the report in Unix seconds
	Status
}

// Join returns one entry for each line in the reports: first the lines of the first report in their
// order, then lines from later reports.
//
// Join adds up counters and weights means by attempts. The state is in_service if all nodes agree
// on it, else the worst state of a node. The pause is the longest among the nodes with this state.
// The cause is the latest cause among these nodes, or else among all nodes. Models, forms and keys
// have the worst state of any node. Provider, limit and the list of keys come from the latest
// report, because nodes adopt a new catalog one by one.
func Join(reports []Report) []CombinedStatus {
	joined := []CombinedStatus{}
	index := map[string]int{}
	for _, r := range reports {
		for _, state := range r.Statuses {
			i, known := index[state.Line]
			if !known {
				i = len(joined)
				index[state.Line] = i
				joined = append(joined, CombinedStatus{})
			}
			joined[i].Nodes = append(joined[i].Nodes, OnNode{Node: r.Epoch, Host: r.Host, At: r.AtMS / 1000, Status: state})
		}
	}
	for i := range joined {
		joined[i].Status = join(joined[i].Nodes)
	}
	return joined
}

// join combines the states of one line on one or more nodes.
func join(nodes []OnNode) Status {
	latest := slices.MaxFunc(nodes, func(a, b OnNode) int { return cmp.Compare(a.At, b.At) })
	out := Status{
		Line:          latest.Line,
		Provider:      latest.Provider,
		MaxConcurrent: latest.MaxConcurrent,
		State:         worst(nodes),
	}
	var rate, firstByte mean
	for _, n := range nodes {
		out.InFlight += n.InFlight
		out.Granted += n.Granted
		out.Attempts += n.Attempts
		out.GatewayCounts += n.GatewayCounts
		if n.Status.State == out.State {
			out.CoolingUntil = max(out.CoolingUntil, n.CoolingUntil)
		}
		if n.SuccessRate != nil {
			rate.add(*n.SuccessRate, n.Attempts)
		}
		if n.FirstByteMS != nil {
			firstByte.add(float64(*n.FirstByteMS), n.Attempts)
		}
	}
	if v, ok := rate.value(); ok {
		out.SuccessRate = &v
	}
	if v, ok := firstByte.value(); ok {
		ms := int64(math.Round(v))
		out.FirstByteMS = &ms
	}
	out.Cause, out.CauseAt = cause(nodes, out.State)
	out.Keys = joinKeys(latest.Keys, nodes)
	out.Margins = joinMargins(nodes)
	out.ModelsOut = partsOut(nodes, func(n *health.PartsOut) []health.PartOut { return n.ModelsOut })
	out.ModelsCooling = partsOut(nodes, func(n *health.PartsOut) []health.PartOut { return n.ModelsCooling })
	out.FormsOut = partsOut(nodes, func(n *health.PartsOut) []health.PartOut { return n.FormsOut })
	out.ModelStates = joinModelStates(nodes, out.PartsOut)
	return out
}

// worst returns the worst state of any node. An unknown state, from a newer node, is worse than
// in_service.
func worst(nodes []OnNode) string {
	order := []string{stateDisabled, stateOutOfService, stateDrained, health.StateCredentialsOut, health.StateCircuitOpen,
		health.StateHalfOpen, health.StateCooling}
	out, rank := health.StateInService, len(order)+1
	for _, n := range nodes {
		r := slices.Index(order, n.Status.State)
		if r < 0 {
			r = len(order)
		}
		if r < rank && n.Status.State != health.StateInService {
			out, rank = n.Status.State, r
		}
	}
	return out
}

// cause returns the latest cause among the nodes in a state, or else among all nodes.
func cause(nodes []OnNode, state string) (text string, at int64) {
	for _, all := range []bool{false, true} {
		for _, n := range nodes {
			if n.Cause != "" && (all || n.Status.State == state) && (text == "" || n.CauseAt > at) {
				text, at = n.Cause, n.CauseAt
			}
		}
		if text != "" {
			break
		}
	}
	return text, at
}

// partsOut merges the nodes' lists of parts, in the order of PartOut.Compare. Each part has the
// earliest Since, the latest Until, and the most recent cause.
func partsOut(nodes []OnNode, list func(*health.PartsOut) []health.PartOut) []health.PartOut {
	var out []health.PartOut
	var causeSince []int64 // for each element of out, Since of the part with its cause
	for n := range nodes {
		for _, part := range list(&nodes[n].PartsOut) {
			i := slices.IndexFunc(out, func(p health.PartOut) bool { return p.Compare(part) == 0 })
			if i < 0 {
				out, causeSince = append(out, part), append(causeSince, part.Since)
				continue
			}
			if part.Since > causeSince[i] {
				out[i].Cause, causeSince[i] = part.Cause, part.Since
			}
			out[i].Since, out[i].Until = min(out[i].Since, part.Since), max(out[i].Until, part.Until)
		}
	}
	slices.SortFunc(out, health.PartOut.Compare)
	return out
}

// mean is a mean weighted by attempts.
type mean struct{ sum, weight float64 }

func (m *mean) add(v float64, attempts int) {
	m.sum += v * float64(attempts)
	m.weight += float64(attempts)
}

// value returns the mean, or false if the total weight is zero.
func (m *mean) value() (float64, bool) {
	if m.weight <= 0 {
		return 0, false
	}
	return m.sum / m.weight, true
}
