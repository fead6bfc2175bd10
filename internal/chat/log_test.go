package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
)

// TestBrokenStreamsAreLogged checks that a broken stream leaves a log line with its account, and
// that the attempt has the cause.
func TestBrokenStreamsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := newTrial(t, reply{pieces: []string{role, firstLine}, err: errors.New("reset by the peer")})
		var log bytes.Buffer
		tr.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
		tr.run(askStream)
		e := tr.end()
		attempts := tr.attempts()
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
		attempts := tr.attempts()
		if f := fault.Of(out.err); len(attempts) == 0 || f.Line != attempts[len(attempts)-1].Line {
			t.Errorf("%+v, attempts %+v", f, attempts)
		}
	})
}

// leaks are provider messages with a word of the request below.
var leaks = []string{
	"prompt rejected: biopsy of Keller at noon",
	"prompt rejected: BIOPSY OF KELLER",
	`prompt rejected: {"content":"K\u00fcndigung biopsy of Keller"}`,
	"prompt rejected: biopsy%20of%20Keller",
	"prompt rejected: 工場の場所は秘密",
}

const leakPrompt = "Kündigung: biopsy of Keller at noon. 工場の場所は秘密です"

// leakWords are pieces of the prompt forbidden in logs.
var leakWords = []string{"biopsy", "BIOPSY", "Keller", "工場"}

// TestLogsDoNotRepeatPrompts checks that neither the log nor the request log repeats a prompt from
// a provider's message, and that the client still gets the message.
func TestLogsDoNotRepeatPrompts(t *testing.T) {
	t.Parallel()
	for i, leak := range leaks {
		body, _ := json.Marshal(map[string]any{
			"error": map[string]string{"type": "invalid_request_error", "code": "bad_prompt", "message": leak},
		})
		for name, play := range map[string]struct {
			stream bool
			reply  reply
			passed bool
		}{
			"rejection":        {false, reply{failure: upstream.Classify(400, "application/json", body, nil)}, true},
			"streamed":         {true, reply{failure: upstream.Classify(400, "application/json", body, nil)}, true},
			"whole answer":     {false, pieces(string(body)), true},
			"first event":      {true, pieces("data: " + string(body) + "\n\n"), true},
			"event after text": {true, pieces(role, hello, "data: "+string(body)+"\n\n"), true},
			"broken page":      {false, reply{failure: upstream.Classify(502, "text/html", []byte("<p>"+leak+"</p>"), nil)}, false},
		} {
			t.Run(fmt.Sprint(i, " ", name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					tr := newTrial(t, play.reply, reply{failure: upstream.Classify(500, "text/plain", []byte(leak), nil)})
					var log bytes.Buffer
					tr.opts.Log = slog.New(slog.NewTextHandler(&log, nil))
					out := tr.run(fmt.Sprintf(`{"model":"swift-1","messages":[{"role":"user","content":%q}],"stream":%t}`, leakPrompt, play.stream))
					attempts := tr.attempts()
					logged := log.String() + fmt.Sprintf("%+v", attempts)
					if out.err != nil {
						logged += fmt.Sprint(fault.Of(out.err).Cause) // the cause is logged
					}
					for _, status := range tr.lines.Statuses() {
						logged += fmt.Sprintf("%+v", status)
					}
					for _, word := range leakWords {
						if strings.Contains(logged, word) {
							t.Errorf("the logs have %s: %s", word, logged)
						}
					}
					if len(attempts) == 0 || !strings.Contains(attempts[0].Cause, "left out") {
						t.Errorf("attempts %+v", attempts)
					}
					if !play.passed {
						return
					}
					if !strings.Contains(attempts[0].Cause, "invalid_request_error: bad_prompt: ") {
						t.Errorf("the names are gone: %+v", attempts)
					}
					read := tr.client.body()
					if out.err != nil {
						read += fault.Of(out.err).Message()
					}
					if want, _ := json.Marshal(leak); !strings.Contains(read, leak) && !strings.Contains(read, strings.Trim(string(want), `"`)) {
						t.Errorf("the client reads %s", read)
					}
				})
			})
		}
	}
}
