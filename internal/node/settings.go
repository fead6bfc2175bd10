package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tollgate/internal/store"
)

// Digests has a digest of each setting that must be equal on all nodes, by the setting's name. The
// name may have a suffix after @, such as the id of a key. Nodes compare only the digests with the same
// name and suffix.
type Digests map[string]string

// SettingsDifference has settings that are not equal on all living nodes.
type SettingsDifference struct {
	Settings []string
	Nodes    [][]string // groups of nodes with equal values, by host
}

// registerSettingsTx adds the digests of a new epoch. Without digests, it is a no-op.
func registerSettingsTx(tx *store.Tx, epoch string, d Digests) error {
	if len(d) == 0 {
		return nil
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("write digests of settings: %w", err)
	}
	_, err = tx.Exec(`INSERT INTO node_settings (epoch, digests) VALUES ($1, $2)`, epoch, string(raw))
	return err
}

// nodeDigests is a living node with its digests.
type nodeDigests struct {
	epoch, host string
	digests     Digests
}

// DifferencesTx compares the settings of the living nodes. Settings with the same groups of nodes are one
// SettingsDifference.
func DifferencesTx(tx *store.Tx) ([]SettingsDifference, error) {
	nodes, err := store.Collect(tx, func(row store.Row) (c nodeDigests, err error) {
		var raw string
		if err := row.Scan(&c.epoch, &c.host, &raw); err != nil {
			return c, err
		}
		if json.Unmarshal([]byte(raw), &c.digests) != nil { // of a version with another format
			c.digests = nil
		}
		return c, nil
	}, `SELECT n.epoch, n.host, s.digests FROM node n JOIN node_settings s ON s.epoch = n.epoch WHERE n.dead = 0 ORDER BY n.host, n.epoch`)
	if err != nil {
		return nil, fmt.Errorf("compare the settings of nodes: %w", err)
	}
	return differences(nodes), nil
}

func differences(nodes []nodeDigests) (all []SettingsDifference) {
	names, hosts := map[string]bool{}, map[string]int{}
	for _, n := range nodes {
		hosts[n.host]++
		for name := range n.digests {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var groups [][]string
		group := map[string]int{} // index of groups by digest
		for _, n := range nodes {
			digest, ok := n.digests[name]
			if !ok {
				continue
			}
			if _, ok := group[digest]; !ok {
				group[digest] = len(groups)
				groups = append(groups, nil)
			}
			i, title := group[digest], n.host
			if n.host == "" || hosts[n.host] > 1 {
				title = strings.TrimSpace(n.host + " (" + n.epoch + ")")
			}
			groups[i] = append(groups[i], title)
		}
		if len(groups) < 2 {
			continue
		}
		setting, _, _ := strings.Cut(name, "@")
		same := func(d SettingsDifference) bool { return slices.EqualFunc(d.Nodes, groups, slices.Equal[[]string]) }
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Settings = append(all[i].Settings, setting)
		} else {
			all = append(all, SettingsDifference{Settings: []string{setting}, Nodes: groups})
		}
	}
	return all
}

// logDifferences logs when nodes begin to run with different settings, and when that ends. It reads the
// settings only if the living nodes have changed since the last call and there are several.
func (n *Node) logDifferences(ctx context.Context, living []string) error {
	if slices.Equal(living, n.compared) {
		return nil
	}
	var found []SettingsDifference
	if len(living) > 1 {
		var err error
		if found, err = store.Read(ctx, n.opts.DB, DifferencesTx); err != nil {
			return err
		}
	}
	n.compared = living
	var settings, nodes []string
	for _, d := range found {
		settings = append(settings, d.Settings...)
		for _, group := range d.Nodes {
			nodes = append(nodes, group...)
		}
	}
	slices.Sort(settings)
	slices.Sort(nodes)
	differing := strings.Join(slices.Compact(settings), ", ")
	switch {
	case differing == n.differing:
	case differing == "":
		n.opts.Log.Info("node: all nodes run with the same settings again")
	default:
		n.opts.Log.Warn("node: the nodes run with different settings; the operator's page Status shows which", "settings", differing,
			"nodes", strings.Join(slices.Compact(nodes), ", "))
	}
	n.differing = differing
	return nil
}
