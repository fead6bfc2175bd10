package job

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// TestCausesDoNotRepeatPrompts checks that prompts and parameters in a provider's error are redacted
// in everything that an operator reads about the job. The user's message keeps the provider's text.
func TestCausesDoNotRepeatPrompts(t *testing.T) {
	t.Parallel()
	const prompt, params = "Kündigung: biopsy of Keller at noon. 工場の場所は秘密です", `{"negative_prompt":"no ugly neighbour Schmidt"}`
	for _, leak := range []string{
		"rejected: biopsy of Keller at noon", `rejected: {"p":"K\u00fcndigung biopsy of Keller"}`, "rejected: BIOPSY%20OF%20KELLER",
		"rejected: 工場の場所は秘密", "rejected: ugly neighbour Schmidt",
	} {
		t.Run(leak, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				var fails func() *upstream.JobFailure
				g := &generator{submit: func(int, jobcall.Task) (*jobcall.TaskStatus, error) { return nil, fails() }}
				c, n := twoLineCluster(t, url, g, g)
				body, _ := json.Marshal(map[string]any{"error": map[string]string{"type": "bad", "code": "some_code", "message": leak}})
				for name, f := range map[string]func() *upstream.JobFailure{
					"submission rejected": func() *upstream.JobFailure {
						return upstream.SubmitFailure("image", 400, "application/json", body, nil)
					},
					"task failed": func() *upstream.JobFailure { return upstream.TaskFailure("image", "some_code", leak) },
					"moderated":   func() *upstream.JobFailure { return upstream.ModerationFailure("image", leak, false) },
				} {
					fails = f
					s := c.submission(n, "easel-1", 1)
					s.Prompt, s.Params = prompt, json.RawMessage(params)
					id := c.submit(n, s)
					body := c.finish(n, id, "image")
					causes := c.causes(n, id, s.Request)
					for _, word := range []string{"biopsy", "BIOPSY", "Keller", "工場", "neighbour"} {
						if strings.Contains(causes, word) {
							t.Errorf("%s: the causes contain %s: %s", name, word, causes)
						}
					}
					if !strings.Contains(causes, "left out") || name != "moderated" && !strings.Contains(causes, "some_code") {
						t.Errorf("%s: causes %q, want a redaction note and the error code", name, causes)
					}
					if body.Error == nil || name != "task failed" && !strings.Contains(body.Error.Message, leak) {
						t.Errorf("%s: the user's error is %+v, want the provider's text", name, body.Error)
					}
				}
			})
		})
	}
}

// causes returns everything that an operator reads about a failed job: the causes of its attempts, its
// entry in the request log and the states of the lines.
func (c *cluster) causes(n *testNode, id, request string) string {
	c.t.Helper()
	var all strings.Builder
	for _, a := range c.view(id).Attempts {
		all.WriteString(a.Cause + "\n")
	}
	fmt.Fprintf(&all, "%+v\n", n.lines.Statuses())
	c.viewTx(func(tx *store.Tx) error {
		var attempts string
		err := tx.QueryRow(`SELECT attempts FROM ledger_receipt WHERE id = $1`, request).Scan(&attempts)
		all.WriteString(attempts)
		return err
	})
	return all.String()
}
