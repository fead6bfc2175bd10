package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// bound limits a command's request to a running service: its duration, and the bytes of the answer.
type bound struct {
	timeout time.Duration
	bytes   int64
}

var (
	boundOfService = bound{2 * time.Minute, 64 << 20}
	boundOfHealth  = bound{3 * time.Second, 4 << 10}
)

// errNoAnswer means that no service answers at the address of the settings.
var errNoAnswer = errors.New("no service answers")

// ask sends a request to the running service at the address of the setting key.
func (b bound) ask(r *http.Request, key string) (answer OperatorAnswer, err error) {
	client := http.Client{Timeout: b.timeout, Transport: &http.Transport{DisableKeepAlives: true}} // no proxy for a local service
	got, err := client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the method and the URL
		}
		flag := Setting{Key: key}.Flag()
		return answer, fmt.Errorf("%w at %s; set --%s to the service's address (%w)", errNoAnswer, r.URL.Host, flag, err)
	}
	defer func() { err = errors.Join(err, got.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(got.Body, b.bytes))
	if err != nil {
		return answer, fmt.Errorf("read the service's answer: %w", err)
	}
	return OperatorAnswer{got.StatusCode, body}, nil
}

// AskService sends one request to the operator API of the running service of these settings, for
// actions of a running node: at admin_listen, or else listen, with admin_token. The error is nil for an
// answer with any status. It is a SettingError if no service runs at the address.
func AskService(ctx context.Context, s *Settings, ask OperatorRequest) (OperatorAnswer, error) {
	s, err := withTokenFile(s)
	if err != nil {
		return OperatorAnswer{}, err
	}
	if s.AdminToken == "" {
		return OperatorAnswer{}, &SettingError{"admin_token",
			errors.New("is not set: this command asks the running service, so set the same token as there")}
	}
	key, listen := "listen", s.Listen
	if s.AdminListen != "" {
		key, listen = "admin_listen", s.AdminListen
	}
	base, err := runningBase(key, listen)
	if err != nil {
		return OperatorAnswer{}, err
	}
	r, err := ask.to(ctx, base, s.AdminToken)
	if err != nil {
		return OperatorAnswer{}, err
	}
	answer, err := boundOfService.ask(r, key)
	if errors.Is(err, errNoAnswer) {
		return answer, &SettingError{key, err}
	}
	return answer, err
}

// AskHealth asks the service of these settings on this machine whether it can serve (/readyz). It
// returns an error if no service answers, or an error with the faults if the service cannot serve.
func AskHealth(ctx context.Context, s *Settings) error {
	base, err := runningBase("listen", s.Listen)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := boundOfHealth.ask(r, "listen")
	if err != nil || answer.Status == http.StatusOK {
		return err
	}
	var body struct {
		Faults map[string]string `json:"faults"`
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil || len(body.Faults) == 0 {
		return fmt.Errorf("the service is not ready: it answered with status %d", answer.Status)
	}
	var faults []string
	for _, part := range slices.Sorted(maps.Keys(body.Faults)) {
		faults = append(faults, part+" "+body.Faults[part])
	}
	return fmt.Errorf("the service is not ready: %s", strings.Join(faults, "; "))
}

// runningBase returns the base address of the running service for the listen address of the setting
// key.
func runningBase(key, listen string) (string, error) {
	if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" {
		return "", &SettingError{key, errors.New("must name the port of the running service, because this command asks the service")}
	}
	return nearBase(listen), nil
}

// nearBase returns the base address by which this machine reaches a listen address.
func nearBase(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // readListen has checked it
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
