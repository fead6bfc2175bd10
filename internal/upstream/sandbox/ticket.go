package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ticket is the state of an accepted task. The sandbox stores nothing else.
type ticket struct {
	accepted int64  // Unix milliseconds
	failKind string // the failure to simulate, or ""
	name     string // identifies the submission
}

// String writes a ticket: `sandbox.1795262002123.render_failed.5f3a…`.
func (t ticket) String() string {
	failKind := t.failKind
	if failKind == "" {
		failKind = "well"
	}
	return fmt.Sprintf("sandbox.%d.%s.%s", t.accepted, failKind, t.name)
}

// readTicket parses a ticket. ok is false if s is not a ticket.
func readTicket(s string) (t ticket, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 || parts[0] != "sandbox" || len(parts[3]) != len(nameOf("")) {
		return ticket{}, false
	}
	accepted, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || accepted < 0 {
		return ticket{}, false
	}
	t = ticket{accepted: accepted, failKind: parts[2], name: parts[3]}
	if t.failKind == "well" {
		t.failKind = ""
	} else if !slices.Contains(failKinds(), t.failKind) {
		return ticket{}, false
	}
	return t, true
}

// done returns the time of the result.
func (t ticket) done(delay time.Duration) time.Time {
	return time.UnixMilli(t.accepted).Add(delay)
}

// nameOf returns a short name for a submission.
func nameOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

// chosen reports whether the submission with a key is in the share of submissions that fail.
func chosen(key string, share float64) bool {
	sum := sha256.Sum256([]byte("rate " + key))
	return float64(binary.BigEndian.Uint32(sum[:4])) < share*(1<<32)
}

// Special values of link.good.
const (
	always int64 = 0
	never  int64 = -1
)

// link names a result of a task, and how its download behaves.
type link struct {
	index  int
	good   int64 // the link works from this time on, in Unix milliseconds
	broken bool  // the download breaks off in the middle
}

// String writes a link: `sandbox:0`, `sandbox:0:from:1795262002123`.
func (l link) String() string {
	s := fmt.Sprintf("sandbox:%d", l.index)
	switch {
	case l.broken:
		s += ":broken"
	case l.good != always:
		s += fmt.Sprintf(":from:%d", l.good)
	}
	return s
}

// readLink parses a link. It returns false if s is not a link.
func readLink(s string) (link, bool) {
	rest, ok := strings.CutPrefix(s, "sandbox:")
	if !ok {
		return link{}, false
	}
	first, rest, _ := strings.Cut(rest, ":")
	index, err := strconv.ParseUint(first, 10, 16)
	if err != nil {
		return link{}, false
	}
	l := link{index: int(index)}
	if from, ok := strings.CutPrefix(rest, "from:"); ok {
		l.good, err = strconv.ParseInt(from, 10, 64)
		return l, err == nil && l.good >= never
	}
	l.broken = rest == "broken"
	return l, rest == "" || l.broken
}
