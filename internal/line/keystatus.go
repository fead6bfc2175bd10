package line

import "slices"

// KeyStatus is how one of several keys of a line is doing on this node.
type KeyStatus struct {
	Position  int    `json:"position"`       // in the catalog, from 1
	Reference string `json:"reference"`      // the key's reference in the catalog
	Hint      string `json:"hint,omitempty"` // its last characters; empty if they would reveal much of the key
	Mark      string `json:"mark,omitempty"` // identifies the key in attempts of jobs too; empty if the key is missing
	State     string `json:"state"`          // see the words of keys
	Cause     string `json:"cause,omitempty"`
	Since     int64  `json:"since,omitempty"` // when it was refused, Unix seconds
	Until     int64  `json:"until,omitempty"` // when it is tried again, Unix seconds
}

// keyStatuses returns how the keys of a line are doing, nil if it has no more than
// one.
func (e *routingEntry) keyStatuses() []KeyStatus {
	all := e.line.Keys()
	if len(all) < 2 {
		return nil
	}
	out := make([]KeyStatus, 0, len(all))
	used := false
	for i, k := range all {
		status := KeyStatus{Position: i + 1, Reference: k.Reference, Hint: k.Hint(), Mark: k.Mark(), State: KeyReady}
		held, refused := e.stats.keys.of(status.Mark)
		switch {
		case k.Why != "":
			status.State, status.Cause = KeyMissing, k.Why
		case refused && !held.doubted:
			status.State, status.Cause = KeyRefused, held.cause
			status.Since, status.Until = held.since.Unix(), held.until.Unix()
		case !used:
			status.State, used = KeyUsed, true
		}
		out = append(out, status)
	}
	return out
}

// joinKeys returns the worst status of each key over all nodes.
func joinKeys(latest []KeyStatus, nodes []OnNode) []KeyStatus {
	order := []string{KeyReady, KeyUsed, KeyMissing, KeyRefused}
	out := slices.Clone(latest)
	for i := range out {
		for _, n := range nodes {
			for _, k := range n.Keys {
				if k.Reference == out[i].Reference && slices.Index(order, k.State) > slices.Index(order, out[i].State) {
					k.Position = out[i].Position
					out[i] = k
				}
			}
		}
	}
	return out
}
