// Package inprocess owns gateways inside the process of a test: for the race detector, for counts
// of goroutines, and for tests that replace a part of the gateway. Invariant: a gateway stops at the
// end of its test at the latest, and an error while it stops fails the test.
package inprocess

import (
	"context"
	"io"
	"maps"
	"strings"
	"sync"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// maxLog is the number of bytes of the log shown after a failure.
const maxLog = 8000

// Serve starts a gateway with settings on a free port. Lines may use the variable FAILING_LINE_KEY.
// The gateway's log goes to log. If log is nil, a failed test shows the end of the log, and the test
// fails if the gateway did not retry a conflict of transactions. stop stops the gateway before the
// end of the test.
func Serve(t *testing.T, settings map[string]string, log io.Writer) (p *scene.Process, stop func()) {
	t.Helper()
	flags := map[string]string{"listen": "127.0.0.1:0", "no_demo": "true", "admin_token": scene.AdminToken}
	maps.Copy(flags, settings)
	flags["private_networks"] = strings.Trim(flags["private_networks"]+","+fakestudio.FilesHost+"/32", ",")
	lookup := func(name string) (string, bool) { return scene.Credential, name == "FAILING_LINE_KEY" }
	s, err := app.ReadSettings(app.Sources{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	var buffer scene.Buffer
	if log == nil {
		log = &buffer
	}
	a, err := app.New(t.Context(), s, app.Options{Stdout: io.Discard, Stderr: log, Lookup: lookup, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stop: %v", err)
		}
		for line := range strings.Lines(buffer.String()) {
			if isLostConflict(line) {
				t.Errorf("a conflict of transactions was not retried: %s", line)
			}
		}
		if text := buffer.String(); t.Failed() && text != "" {
			t.Logf("log of %s:\n%s", a.Base(), text[max(0, len(text)-maxLog):])
		}
	})
	t.Cleanup(stop)
	return scene.Attach(t, a.Base()), stop
}

// isLostConflict reports whether a line of the log is about a serialization failure or a deadlock
// that was not retried. Loops repeat a failed step ("job: cannot start jobs").
func isLostConflict(line string) bool {
	conflict := strings.Contains(line, "SQLSTATE 40001") || strings.Contains(line, "SQLSTATE 40P01")
	return conflict && !strings.Contains(line, "is retried") && !strings.Contains(line, ": cannot ")
}
