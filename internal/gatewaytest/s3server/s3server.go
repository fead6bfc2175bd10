// Package s3server owns the S3-compatible server for media in tests: a real server, built by
// scripts/s3server, as its own process on a folder. Invariants: a server ends with its test; if the
// server is missing or cannot start, the test fails with the reason and is never skipped.
package s3server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// EnvBinary names the variable with the path of the server's binary. `make test`
// builds it and sets it.
const EnvBinary = "TOLLGATE_TEST_S3SERVER"

// The server's only bucket, and its credentials.
const (
	Bucket = "media"
	Access = "test-access"
	Secret = "test-secret"
)

// Limits of a start.
const (
	startTime     = 30 * time.Second
	startAttempts = 5 // another process may have taken the free port
	pollEvery     = 20 * time.Millisecond
)

// Server is a running server with an empty bucket.
type Server struct {
	// URL is the server's address.
	URL string

	cmd    *exec.Cmd
	done   chan struct{} // closed when the process has ended
	output bytes.Buffer  // valid after done is closed
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	path := os.Getenv(EnvBinary)
	if path == "" {
		t.Fatalf("%s is not set: run the tests with `make test`, which builds the S3 server, or set it: export %s=$(scripts/s3server)",
			EnvBinary, EnvBinary)
	}
	var err error
	for range startAttempts {
		var s *Server
		if s, err = start(t, path); err == nil {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatal(err)
	return nil
}

func start(t testing.TB, path string) (*Server, error) {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"files/" + Bucket, "attributes"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(folder)), 0o700); err != nil {
			return nil, err
		}
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := probe.Addr().String()
	if err := probe.Close(); err != nil {
		return nil, err
	}
	s := &Server{URL: "http://" + address, done: make(chan struct{})}
	s.cmd = exec.Command(path, "--access", Access, "--secret", Secret, "--port", address, "--health", "/health",
		"--quiet", "--keep-alive", "posix", "--sidecar", filepath.Join(dir, "attributes"), filepath.Join(dir, "files"))
	s.cmd.Dir = dir
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // the process was killed, or its output has the reason
		close(s.done)
	}()
	if err := s.wait(); err != nil {
		s.Kill()
		return nil, fmt.Errorf("start the S3 server: %w\n%s", err, &s.output)
	}
	return s, nil
}

// wait waits until the server answers.
func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/health", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-s.done:
			return fmt.Errorf("the process ended: %s", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("no answer within %v: %w", startTime, err)
		}
	}
}

// Kill ends the server as a power failure would. It may be called twice.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // the process may have ended
	<-s.done
}

// Location returns the setting `media` for the bucket. address is the URL of the server or of a
// proxy.
func (s *Server) Location(address string) string {
	return "s3://" + Bucket + "?endpoint=" + address + "&region=us-east-1&path_style=true"
}

// Lookup looks up an environment variable with the server's credentials, like os.LookupEnv.
func Lookup(name string) (string, bool) {
	switch name {
	case "AWS_ACCESS_KEY_ID":
		return Access, true
	case "AWS_SECRET_ACCESS_KEY":
		return Secret, true
	}
	return "", false
}
