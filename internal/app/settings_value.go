package app

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/topup"
	"tollgate/internal/topup/epay"
)

// The readers below turn the text of one setting into its value. Their errors describe a valid
// value; their caller adds the setting and the source.

// entryError is an error that quotes the wrong entry of a list.
type entryError struct{ error }

// readListen reads host:port with a number for a port.
func readListen(text string) (string, error) {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("must be HOST:PORT, such as 127.0.0.1:8080")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", errors.New("must end in a port from 0 to 65535")
	}
	return text, nil
}

// readURL reads an absolute http or https address and removes a slash at its end.
func readURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Fragment != "" {
		return "", errors.New("must be an http:// or https:// address")
	}
	return strings.TrimRight(text, "/"), nil
}

// readPublicURL reads an address that paths are appended to, so it has no query.
func readPublicURL(text string) (string, error) {
	if strings.ContainsAny(text, "?#") {
		return "", errors.New("must be an http:// or https:// address without a query")
	}
	return readURL(text)
}

// readDatabase reads the choice of database; package store checks the rest.
func readDatabase(text string) (string, error) {
	path, sqlite := strings.CutPrefix(text, "sqlite:")
	switch {
	case sqlite && path != "":
	case strings.HasPrefix(text, "postgres://"), strings.HasPrefix(text, "postgresql://"):
	default:
		return "", errors.New("must be sqlite:PATH or postgres://…")
	}
	return text, nil
}

// readMedia reads the location of result files.
func readMedia(text string) (string, error) {
	fault := errors.New("must be file:DIR or s3://BUCKET?endpoint=…&region=…&path_style=true")
	if dir, file := strings.CutPrefix(text, "file:"); file {
		if dir == "" {
			return "", fault
		}
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" {
		return "", fault
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", fault
	}
	for name := range query {
		if !slices.Contains([]string{"endpoint", "region", "path_style"}, name) {
			return "", fault
		}
	}
	return text, nil
}

// readHeaders reads header fields. Names and values are visible ASCII. A value may contain spaces.
func readHeaders(text string) (map[string]string, error) {
	fault := errors.New("must be NAME=VALUE, or several of these separated by commas")
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, paired := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		invalid := func(r rune) bool { return r < ' ' || r > '~' }
		if !paired || name == "" || value == "" || strings.ContainsAny(name, " :") || strings.ContainsFunc(name+value, invalid) {
			return nil, fault
		}
		out[name] = value
	}
	return out, nil
}

// readToken reads a bearer token: visible ASCII, so that every client can send it in a header.
func readToken(text string) (string, error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("must be visible ASCII characters without spaces")
	}
	return text, nil
}

// shortestToken is the minimum length of an operator token if other machines can guess at it.
const shortestToken = 16

// checkToken refuses a guessable operator token unless only this machine can try it.
func checkToken(s *Settings) error {
	key, listen := "listen", s.Listen
	if s.AdminListen != "" {
		key, listen = "admin_listen", s.AdminListen
	}
	if n := len(s.AdminToken); n == 0 || n >= shortestToken || isLoopback(listen) {
		return nil
	}
	return &SettingError{"admin_token", fmt.Errorf("must have at least %d characters, because other machines can reach the service (%s is %s)",
		shortestToken, key, listen)}
}

// isLoopback reports whether an address is only for this machine.
func isLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen) // readListen has checked it
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback() || host == "localhost"
}

// readNetworks reads CIDRs separated by commas; a bare address is a network of one. It unmaps IPv4
// networks in IPv6.
func readNetworks(text string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, part := range splitList(text) {
		network, err := netip.ParsePrefix(part)
		if err != nil {
			address, err := netip.ParseAddr(part)
			if err != nil || address.Zone() != "" {
				return nil, entryError{fmt.Errorf("%q is not a CIDR such as 10.0.0.0/8", part)}
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if network.Addr().Is4In6() {
			if network.Bits() < 96 {
				return nil, fmt.Errorf("%q is a network of mapped IPv4 addresses: write it as IPv4", part)
			}
			network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
		}
		out = append(out, network.Masked())
	}
	return out, nil
}

// readOrigins reads the origins of web pages as browsers spell them, or `*`.
func readOrigins(text string) ([]string, error) {
	list := splitList(text)
	for _, origin := range list {
		if origin == "*" {
			if len(list) > 1 {
				return nil, errors.New("must be a list of origins, or * alone")
			}
			continue
		}
		if strings.Contains(origin, "*") { // no browser sends such an origin
			return nil, errors.New("must list whole origins: the only wildcard is * alone")
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host) || defaultPort(u) {
			return nil, entryError{fmt.Errorf("%q is not an origin such as https://app.example.com, in lower case, "+
				"without a path or default port", origin)}
		}
	}
	return list, nil
}

// defaultPort reports whether an address names the default port of its scheme, which browsers omit.
func defaultPort(u *url.URL) bool {
	return u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443"
}

// longestDuration keeps every sum of a time and a setting in range.
const longestDuration = 100 * 365 * 24 * time.Hour

// readDuration reads a Go duration above 0.
func readDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > longestDuration {
		return 0, errors.New("must be a duration above 0, such as 90s, 15m or 72h")
	}
	return d, nil
}

// readDurationOrZero is like readDuration, and accepts 0.
func readDurationOrZero(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := readDuration(text)
	if err != nil {
		err = errors.New("must be 0 or a duration, such as 90s or 15m")
	}
	return d, err
}

// shortestLease leaves a node four heartbeats; each may wait for a lock held by the node's own
// batch.
const shortestLease = time.Second

// readLease reads the time that a node may be silent.
func readLease(text string) (time.Duration, error) {
	d, err := readDuration(text)
	if err == nil && d < shortestLease {
		err = fmt.Errorf("must be at least %s, so that a node that waits for the database is not declared dead",
			shortestLease)
	}
	return d, err
}

// longestLock is below the ledger's limit for a whole transaction, which is 5 s.
const longestLock = 4 * time.Second

// readLockTimeout reads how long the ledger waits for a locked row.
func readLockTimeout(text string) (time.Duration, error) {
	d, err := readDuration(text)
	if err == nil && (d < time.Millisecond || d > longestLock) {
		err = fmt.Errorf("must be between 1ms and %s, because a whole transaction has 5s", longestLock)
	}
	return d, err
}

// maxRetries bounds the retries of a delivery.
const maxRetries = 50

// readDurations reads durations separated by commas. An empty text is an empty list.
func readDurations(text string) ([]time.Duration, error) {
	out := []time.Duration{}
	for _, part := range splitList(text) {
		d, err := readDuration(part)
		if err != nil {
			return nil, errors.New("must be a list of durations above 0, such as 1m,5m,30m")
		}
		out = append(out, d)
	}
	if len(out) > maxRetries {
		return nil, fmt.Errorf("must not have more than %d entries", maxRetries)
	}
	return out, nil
}

// largestSize bounds bodies and answers in memory.
const largestSize = 1 << 30

// readSize reads a number of bytes in memory: 32MiB, 512KiB, 10MB, 1048576.
func readSize(text string) (int64, error) { return readBytes(text, largestSize, "1GiB") }

// readStorage reads a number of bytes in the database.
func readStorage(text string) (int64, error) { return readBytes(text, 1<<40, "1024GiB") }

// readBytes reads a number of bytes up to largest, whose name is for the error.
func readBytes(text string, largest int64, name string) (int64, error) {
	digits, unit := text, int64(1)
	for _, u := range []struct {
		name  string
		bytes int64
	}{
		{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
		{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
	} {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit || n*unit > largest {
		return 0, fmt.Errorf("must be a size from 1B to %s, such as 32MiB", name)
	}
	return n * unit, nil
}

// countBetween reads a whole number within bounds.
func countBetween(low, high int) func(text string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("must be a whole number from %d to %d", low, high)
		}
		return n, nil
	}
}

// readSwitch reads true or false.
func readSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// readUnknownFields reads how to treat undocumented fields.
func readUnknownFields(text string) (refuse bool, err error) {
	if text != "ignore" && text != "refuse" {
		return false, errors.New("must be ignore or refuse")
	}
	return text == "refuse", nil
}

// readLevel reads the lowest logged level.
func readLevel(text string) (level slog.Level, err error) {
	if _, err := oneOf("debug", "info", "warn", "error")(strings.ToLower(text)); err != nil {
		return 0, err
	}
	err = level.UnmarshalText([]byte(text))
	return level, err
}

// oneOf reads one of the given words.
func oneOf(words ...string) func(text string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("must be one of %s", strings.Join(words, ", "))
		}
		return text, nil
	}
}

// readText reads any text.
func readText(text string) (string, error) { return text, nil }

// readList reads any texts separated by commas.
func readList(text string) ([]string, error) { return splitList(text), nil }

// readMethods reads the ways to pay at an EPay site.
func readMethods(text string) ([]topup.PayMethod, error) { return epay.ParseMethods(splitList(text)) }

// checked reads a text that passes a check.
func checked(check func(text string) error) func(text string) (string, error) {
	return func(text string) (string, error) { return text, check(text) }
}

// splitList splits at commas and trims; an empty text has no parts.
func splitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
