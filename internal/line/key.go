package line

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog/secret"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream/chatcall"
)

// Waits for probes of keys.
const (
	// A refused key is probed after keyWait. The wait doubles up to maxKeyWait.
	keyWait    = 5 * time.Minute
	maxKeyWait = time.Hour
	// A key in doubt after a request is probed at once. If the probe decides nothing, the next
	// probe follows after doubtWait. After a successful probe, requests cannot cause doubts about
	// the key for keyTrusted.
	doubtWait  = 10 * time.Second
	keyTrusted = time.Minute
)

// The states of a key in KeyStatus and in alerts.
const (
	KeyUsed    = "in_use"  // the first key for requests
	KeyReady   = "ready"   // used if the keys before it are refused
	KeyRefused = "refused" // refused by the provider; not used until a probe succeeds
	KeyMissing = "missing" // this node does not have the key

	alertKeyRefused  = "key_refused"
	alertKeyAccepted = "key_accepted"
)

// lineKey is one of a line's credentials on this node, with its adapter. A line without credentials
// has one key without a value.
type lineKey struct {
	entry    *routingEntry
	position int // position in the document, from 1
	mark     string
	key      secret.LineKey
	adapter  chatcall.Adapter
}

// name returns the name of the key in logs and alerts.
func (k *lineKey) name() string {
	return fmt.Sprintf("key %d%s, %s", k.position, hintSuffix(k.key.Hint()), k.key.Reference)
}

func hintSuffix(hint string) string {
	if hint == "" {
		return ""
	}
	return " (" + hint + ")"
}

// refusals holds the refused keys of a line by their marks.
type refusals struct {
	nonEmpty atomic.Bool // whether byMark has entries

	mu           sync.Mutex
	byMark       map[string]refusal
	trustedUntil map[string]time.Time // by mark
}

// refusal is the record of a refused key.
type refusal struct {
	since, until time.Time // time of the refusal and of the next probe
	wait         time.Duration
	cause        string
	probing      bool
	tryNext      bool // whether the next call uses the key, because probes are impossible
	inDoubt      bool // only requests were refused; they use other keys until a probe decides
}

// excludes reports whether a key must not be used.
func (r *refusals) excludes(k *lineKey) bool {
	record, refused := r.lookup(k.mark)
	return refused && !record.tryNext
}

// confirmed reports whether the provider is known to refuse a key independently of the request.
func (r *refusals) confirmed(k *lineKey) bool {
	record, refused := r.lookup(k.mark)
	return refused && !record.tryNext && !record.inDoubt
}

// doubt makes a probe decide whether the provider refuses a key. Until then requests use other
// keys. doubt reports whether a probe is due.
func (r *refusals) doubt(k *lineKey, now time.Time, cause string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.byMark[k.mark]; known || now.Before(r.trustedUntil[k.mark]) {
		return false
	}
	r.put(k, refusal{since: now, until: now, wait: keyWait, cause: cause, inDoubt: true})
	return true
}

// lookup returns the record of a refused key.
func (r *refusals) lookup(mark string) (refusal, bool) {
	if !r.nonEmpty.Load() {
		return refusal{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record, refused := r.byMark[mark]
	return record, refused
}

// add records a confirmed refusal. It returns false if the refusal was confirmed before.
func (r *refusals) add(k *lineKey, now time.Time, cause string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, known := r.byMark[k.mark]
	switch {
	case !known || record.inDoubt:
		known = false
		record = refusal{since: now, wait: keyWait}
	case record.probing || record.tryNext:
		record.wait = min(2*record.wait, maxKeyWait)
	default:
		return false
	}
	record.until, record.cause, record.probing, record.tryNext = now.Add(record.wait), cause, false, false
	r.put(k, record)
	return !known
}

// put stores the record of a key. The caller must hold mu.
func (r *refusals) put(k *lineKey, record refusal) {
	if r.byMark == nil {
		r.byMark = map[string]refusal{}
	}
	r.byMark[k.mark] = record
	r.nonEmpty.Store(true)
}

// drop deletes the record of a key. It reports whether the refusal was confirmed.
func (r *refusals) drop(k *lineKey) bool {
	if !r.nonEmpty.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record, known := r.byMark[k.mark]
	delete(r.byMark, k.mark)
	r.nonEmpty.Store(len(r.byMark) > 0)
	return known && !record.inDoubt
}

// trust records that a probe accepted a key.
func (r *refusals) trust(k *lineKey, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trustedUntil == nil {
		r.trustedUntil = map[string]time.Time{}
	}
	maps.DeleteFunc(r.trustedUntil, func(_ string, until time.Time) bool { return !now.Before(until) })
	r.trustedUntil[k.mark] = now.Add(keyTrusted)
}

// findings returns the confirmed refusals by mark.
func (r *refusals) findings() map[string]health.Finding {
	if !r.nonEmpty.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]health.Finding{}
	for mark, record := range r.byMark {
		if !record.inDoubt {
			all[mark] = health.Finding{State: alertKeyRefused, Cause: record.cause, Since: record.since, Until: record.until, Wait: record.wait}
		}
	}
	return all
}

// adopt applies the refusal of another node.
func (r *refusals) adopt(mark string, f health.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byMark == nil {
		r.byMark = map[string]refusal{}
	}
	r.byMark[mark] = refusal{since: f.Since, until: f.Until, wait: f.Wait, cause: f.Cause}
	r.nonEmpty.Store(true)
}

// release deletes a refusal after another node found the key accepted.
func (r *refusals) release(mark string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byMark, mark)
	r.nonEmpty.Store(len(r.byMark) > 0)
}

// clear deletes all refusals.
func (r *refusals) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byMark, r.trustedUntil = nil, nil
	r.nonEmpty.Store(false)
}

// pending reports whether one of the keys must be probed now.
func (r *refusals) pending(now time.Time, keys []*lineKey) bool {
	if !r.nonEmpty.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if record, refused := r.byMark[k.mark]; refused && !record.probing && !record.tryNext && !now.Before(record.until) {
			return true
		}
	}
	return false
}

// due returns the keys to probe now and marks them as being probed. If canProbe is false, it
// returns nil and lets the next calls try the keys.
func (r *refusals) due(now time.Time, keys []*lineKey, canProbe bool) (due []*lineKey) {
	if !r.nonEmpty.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		record, refused := r.byMark[k.mark]
		if !refused || record.probing || record.tryNext || now.Before(record.until) {
			continue
		}
		if record.probing, record.tryNext = canProbe, !canProbe; canProbe {
			due = append(due, k)
		}
		r.put(k, record)
	}
	return due
}

// postponeProbe postpones the next probe after a probe without a result.
func (r *refusals) postponeProbe(k *lineKey, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record, refused := r.byMark[k.mark]; refused {
		record.probing, record.until = false, now.Add(record.wait)
		if record.inDoubt {
			record.until = now.Add(doubtWait)
		}
		r.put(k, record)
	}
}
