package show

import (
	"fmt"
	"net/http"
	"strings"

	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
)

// Reply returns a text for a customer's question about a request: its outcome, its charge, and
// advice. The text names no line and quotes no provider.
func Reply(r requestlog.Receipt) ui.Snippets {
	subject := fmt.Sprintf("about your request %s of %s (model %s):", r.ID, ui.UTC(r.CreatedMS), ui.OrDash(r.Model))
	return replySnippet("Hello,", subject, describeOutcome(r), describeCost(r))
}

// ReplyOfCharge is Reply for a request without a row in the log.
func ReplyOfCharge(c movement.Charge) ui.Snippets {
	return replySnippet("Hello,",
		fmt.Sprintf("about your request %s, which ended on %s (model %s):", c.Request, ui.UTC(c.EndedMS), ui.OrDash(c.Model)),
		fmt.Sprintf("You were charged %s for it. Its details have been deleted.", ui.ExactUSD(c.Amount)))
}

func replySnippet(paragraphs ...string) ui.Snippets {
	text := strings.Join(paragraphs, "\n\n") + "\n"
	return ui.Snippets{ID: "reply", Tabs: []ui.Snippet{{Name: "Answer", Text: ui.Data(text), Prose: true}}}
}

func describeOutcome(r requestlog.Receipt) string {
	code := strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, r.Code))
	switch {
	case r.Outcome == ledger.Closed:
		return "Your program closed the connection before the answer began."
	case r.Outcome == ledger.Billed && r.Job != "":
		return "It was accepted, and its job has succeeded."
	case r.Outcome == ledger.Billed && r.Code != "":
		return "The answer began and then broke off (" + r.Code + ")."
	case r.Outcome == ledger.Billed:
		return "It was answered after " + ui.FormatDuration(r.DurationMS).String() + "."
	case r.Outcome == ledger.Refused:
		return "It was refused with " + code + describeCode(r.Code)
	case r.Job != "":
		return "Its job failed (" + r.Code + "): " + fault.LookupJob(fault.Code(r.Code)).Message
	}
	return "It failed with " + code + describeCode(r.Code)
}

// describeCode explains an error code and gives advice. The code of a provider is unknown here.
func describeCode(code string) string {
	row, known := fault.Lookup(fault.Code(code))
	if !known {
		return ". The error message came from the model's provider and says what to change."
	}
	return ": " + strings.ReplaceAll(row.When+". "+row.Do, "`", "")
}

// describeCost describes the charge of a request and the release of its hold.
func describeCost(r requestlog.Receipt) string {
	if r.Outcome != ledger.Billed {
		if r.Held > 0 {
			return "You were not charged: the reserved " + ui.ExactUSD(r.Held) + " was released."
		}
		return "You were not charged."
	}
	text := "You were charged " + ui.ExactUSD(r.Cost)
	if n := r.Tokens; n.Prompt > 0 || n.Completion > 0 {
		text += fmt.Sprintf(", for %s tokens of prompt", ui.Thousands(n.Prompt))
		if n.Cached > 0 {
			text += fmt.Sprintf(" (%s of them from the cache)", ui.Thousands(n.Cached))
		}
		text += fmt.Sprintf(" and %s of answer", ui.Thousands(n.Completion))
	} else if q := r.Quantity; q.Unit == measure.VideoMS {
		text += fmt.Sprintf(", for 1 clip, %d s in all", q.Unit.Whole(q.N))
	} else if q.N > 0 {
		text += ", for " + Count(q).String()
	}
	if r.Status == http.StatusOK && r.Code != "" {
		text += ": you pay for the part of the stream that was sent before it broke off"
	}
	return text + "."
}
