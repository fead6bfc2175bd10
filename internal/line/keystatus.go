package line

import "slices"

// KeyStatus is the state of one key on this node. Lines with one key have no KeyStatus.
type KeyStatus struct {
	Position  int    `json:"position"`       // in the catalog, from 1
	Reference string `json:"reference"`      // reference to the key in the catalog
	Hint      string `json:"hint,omitempty"` // last characters of the key; empty if they would reveal much of the key
	Mark      string `json:"mark,omitempty"` // identifies the key, also in job attempts; empty if the key is missing
	State     string `json:"state"`          // KeyUsed, KeyReady, KeyRefused or KeyMissing
	Cause     string `json:"cause,omitempty"`
	Since     int64  `json:"since,omitempty"` // start of the refusal in Unix seconds
	Until     int64  `json:"until,omitempty"` // next try in Unix seconds
}

// keyStatuses returns the state of each key of a line, or nil for a line with one key.
func (e *routingEntry) keyStatuses() []KeyStatus {
	all := e.line.Keys()
	if len(all) < 2 {
		return nil
	}
	out := make([]KeyStatus, 0, len(all))
	foundUsed := false
	for i, k := range all {
		status := KeyStatus{Position: i + 1, Reference: k.Reference, Hint: k.Hint(), Mark: k.Fingerprint(), State: KeyReady}
		record, refused := e.stats.keys.lookup(status.Mark)
		switch {
		case k.MissingReason != "":
			status.State, status.Cause = KeyMissing, k.MissingReason
		case refused && !record.inDoubt:
			status.State, status.Cause = KeyRefused, record.cause
			status.Since, status.Until = record.since.Unix(), record.until.Unix()
		case !foundUsed:
			status.State, foundUsed = KeyUsed, true
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
