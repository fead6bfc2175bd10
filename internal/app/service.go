package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Bounds of what a command asks a running service for.
const (
	serviceTimeout = 2 * time.Minute
	maxOfService   = 64 << 20 // bytes of an answer
)

// AskService sends one request to the operator API of the service that runs with
// these settings, for what only a running node can do: at admin_listen, or else
// listen, with admin_token. The error of a request that was answered, whatever the
// status, is nil; a SettingError says that the settings lead to no service.
func AskService(ctx context.Context, s *Settings, ask OperatorRequest) (answer OperatorAnswer, err error) {
	if s.AdminToken == "" {
		return answer, &SettingError{"admin_token", errors.New("is not set, and this asks the running service for its operator: set it as there")}
	}
	key, base, err := serviceBase(s)
	if err != nil {
		return answer, err
	}
	r, err := ask.to(ctx, base, s.AdminToken)
	if err != nil {
		return answer, err
	}
	client := http.Client{Timeout: serviceTimeout, Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is near
	got, err := client.Do(r)
	if err != nil {
		return answer, &SettingError{key, fmt.Errorf("no service answers there: %w", err)}
	}
	defer func() { err = errors.Join(err, got.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(got.Body, maxOfService))
	if err != nil {
		return answer, fmt.Errorf("read the service's answer: %w", err)
	}
	return OperatorAnswer{got.StatusCode, body}, nil
}

// Bounds of the question whether a service can serve.
const (
	healthTimeout = 3 * time.Second
	maxHealth     = 4 << 10 // bytes of the answer
)

// AskHealth asks the service that runs with these settings on this machine
// whether it can serve (/readyz), and tells how it is not: a SettingError where
// the settings lead to none.
func AskHealth(ctx context.Context, s *Settings) (err error) {
	if _, port, err := net.SplitHostPort(s.Listen); err != nil || port == "0" {
		return &SettingError{"listen", errors.New("must name the port of the running service, which this asks")}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, nearBase(s.Listen)+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is near
	got, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("no service answers: %w", err)
	}
	defer func() { err = errors.Join(err, got.Body.Close()) }()
	if got.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(got.Body, maxHealth))
	return errors.Join(fmt.Errorf("the service cannot serve: %s", bytes.TrimSpace(body)), err)
}

// serviceBase is where the operator API of the settings answers, and the setting
// that says so.
func serviceBase(s *Settings) (key, base string, err error) {
	key, listen := "listen", s.Listen
	if s.AdminListen != "" {
		key, listen = "admin_listen", s.AdminListen
	}
	if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" {
		return "", "", &SettingError{key, errors.New("must name the port of the running service, which this asks")}
	}
	return key, nearBase(listen), nil
}

// nearBase is the base address at which this machine reaches a listen address.
func nearBase(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // as readListen has let it pass
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
