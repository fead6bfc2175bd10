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
var errNoAnswer = errors.New("no service answers there")

// ask sends a request to the running service of these settings.
func (b bound) ask(r *http.Request) (answer OperatorAnswer, err error) {
	client := http.Client{Timeout: b.timeout, Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is near
	got, err := client.Do(r)
	if err != nil {
		return answer, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer func() { err = errors.Join(err, got.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(got.Body, b.bytes))
	if err != nil {
		return answer, fmt.Errorf("read the service's answer: %w", err)
	}
	return OperatorAnswer{got.StatusCode, body}, nil
}

// AskService sends one request to the operator API of the running service of these settings, for
// actions of a running node: at admin_listen, or else listen, with admin_token. The error is nil if
// the request was answered, whatever the status; it is a SettingError if no service runs at the
// address.
func AskService(ctx context.Context, s *Settings, ask OperatorRequest) (OperatorAnswer, error) {
	s, err := withTokenFile(s)
	if err != nil {
		return OperatorAnswer{}, err
	}
	if s.AdminToken == "" {
		return OperatorAnswer{}, &SettingError{"admin_token",
			errors.New("is not set, and this asks the running service for its operator: set it as there")}
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
	answer, err := boundOfService.ask(r)
	if errors.Is(err, errNoAnswer) {
		return answer, &SettingError{key, err}
	}
	return answer, err
}

// AskHealth asks the service of these settings on this machine whether it can serve (/readyz), and
// returns its faults. The error is a SettingError if there is no service.
func AskHealth(ctx context.Context, s *Settings) error {
	base, err := runningBase("listen", s.Listen)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := boundOfHealth.ask(r)
	if err != nil || answer.Status == http.StatusOK {
		return err
	}
	return fmt.Errorf("the service cannot serve: %s", bytes.TrimSpace(answer.Body))
}

// runningBase returns the base address of the running service for the listen address of the setting
// key.
func runningBase(key, listen string) (string, error) {
	if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" {
		return "", &SettingError{key, errors.New("must name the port of the running service, which this asks")}
	}
	return nearBase(listen), nil
}

// nearBase returns the base address by which this machine reaches a listen address.
func nearBase(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // as readListen has let it pass
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}
