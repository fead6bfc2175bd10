package chat

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
)

// TestBrokenStreamsAreLogged checks that a broken stream leaves a log line with its account, and
// that the attempt has the cause.
func TestBrokenStreamsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: []string{role, strings.Replace(hello, "Hello", `Hello\n`, 1)}, err: errors.New("reset by the peer")})
		var log bytes.Buffer
		tr.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
		tr.run(askStream)
		e := tr.end()
		attempts, _ := e.Attempts.([]line.AttemptRecord)
		if e.Outcome != ledger.Billed || len(attempts) != 1 || attempts[0].Code != string(fault.UpstreamConnectionError) ||
			!strings.Contains(attempts[0].Cause, "reset by the peer") {
			t.Errorf("end %+v", e)
		}
		for _, want := range []string{`msg="request failed"`, "request=", "account=", "key=", "model=", "line=" + attempts[0].Line,
			"code=upstream_connection_error", "reset by the peer"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in %s", want, log.String())
			}
		}
	})
}

// TestFailuresNameTheirLine checks that the returned error has the line of the last attempt.
func TestFailuresNameTheirLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{err: errors.New("refused")}, reply{err: errors.New("refused")}, reply{err: errors.New("refused")})
		out := tr.run(askStream)
		attempts, _ := tr.end().Attempts.([]line.AttemptRecord)
		if f := fault.Of(out.err); len(attempts) == 0 || f.Line != attempts[len(attempts)-1].Line {
			t.Errorf("%+v, attempts %+v", f, attempts)
		}
	})
}
