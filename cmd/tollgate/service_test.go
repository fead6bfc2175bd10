package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// service is a running `tollgate serve`.
type service struct {
	t      *testing.T
	cmd    *exec.Cmd
	base   string        // http://HOST:PORT
	out    *bytes.Buffer // complete after wait
	errors *bufio.Reader // standard error until the ready line
	log    chan string   // standard error after the ready line; complete after wait
}

// serve starts the service on a free port and waits until it is ready.
func serve(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	s := startService(t, dir, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	s.waitUntilReady()
	return s
}

// startService starts a service without waiting until it is ready.
func startService(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	s := &service{t: t, out: new(bytes.Buffer), log: make(chan string, 1), cmd: command(t, dir, append([]string{"serve"}, args...)...)}
	s.cmd.Stdout = s.out
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.errors = bufio.NewReader(pipe)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	})
	return s
}

func (s *service) waitUntilReady() {
	s.t.Helper()
	var log strings.Builder
	for s.base == "" {
		line, err := s.errors.ReadString('\n')
		log.WriteString(line)
		if err != nil {
			s.t.Fatalf("the service ended before it was ready: %s", log.String())
		}
		if base, ready := strings.CutPrefix(line, "listening on "); ready {
			s.base = strings.TrimSpace(base)
		}
	}
	go func() {
		rest, _ := io.ReadAll(s.errors)
		s.log <- log.String() + string(rest)
	}()
}

func (s *service) signal(sig os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// wait returns the exit code, or -1 for a killed process, and the log.
func (s *service) wait() (int, string) {
	log := <-s.log
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode(), log
}

// stop ends the service with SIGTERM.
func (s *service) stop() {
	s.t.Helper()
	s.signal(syscall.SIGTERM)
	if code, log := s.wait(); code != 0 {
		s.t.Errorf("after SIGTERM the service ended with %d, want 0: %s", code, log)
	}
}

// request sends a request with a key, and returns the status and the body of the answer.
func (s *service) request(method, path, key, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(got)
}
