package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/wire"
)

// TestMoneyDocumentStreams plays the streams of docs/money.md and checks their charges.
func TestMoneyDocumentStreams(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "money.md"))
	if err != nil {
		t.Fatal(err)
	}
	document := string(raw)
	_, rest, _ := strings.Cut(document, "```yaml\n")
	models, _, _ := strings.Cut(rest, "```")
	snapshot := snapshotOf(t, models+"lines:\n  - {id: first, provider: script, models: {swift-1: vendor-model}}\n", wire.FormChat)

	const header = "| usage before the finish | finished | usage after it | prompt | completion | charged, USD | because |\n"
	_, table, _ := strings.Cut(document, header)
	rows := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "|\n"), "|")
		if len(cells) != 7 {
			break
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		rows++
		tr := newTrial(t, documentedStream(t, cells[0], cells[1] == "yes", cells[2]))
		tr.send(chatCall(t, snapshot, askStream))
		e := tr.end()
		got := []string{fmt.Sprint(e.Tokens.Prompt), fmt.Sprint(e.Tokens.Completion), e.Cost.String()}
		if !slices.Equal(got, cells[3:6]) {
			t.Errorf("docs/money.md, %s: charged for %v", strings.TrimSpace(row), got)
		}
	}
	if rows < 6 {
		t.Fatalf("docs/money.md: %d streams", rows)
	}
}

// documentedStream is a stream of three tokens with a usage before its finish
// and after it, each as `prompt, completion` or none. It breaks off without the
// finish.
func documentedStream(t *testing.T, before string, finished bool, after string) reply {
	t.Helper()
	usage := func(cell string) string {
		if cell == "none" || cell == "" {
			return ""
		}
		var prompt, completion int
		if _, err := fmt.Sscanf(cell, "%d, %d", &prompt, &completion); err != nil {
			t.Fatalf("docs/money.md: usage %q: %v", cell, err)
		}
		return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, prompt, completion)
	}
	text := `data: {"choices":[{"index":0,"delta":{"content":"one two three"},"finish_reason":null}]` + usage(before) + "}\n\n"
	if !finished {
		return reply{pieces: []string{role, text}, err: fmt.Errorf("connection reset")}
	}
	parts := []string{role, text, stop}
	if frame := usage(after); frame != "" {
		parts = append(parts, `data: {"choices":[]`+frame+"}\n\n")
	}
	return reply{pieces: append(parts, doneEvent)}
}
