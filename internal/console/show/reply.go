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
	subject := ui.Sayf("about your request %s of %s (model %s):", r.ID, ui.UTC(r.CreatedMS), ui.OrDash(r.Model))
	return replySnippet(subject, describeOutcome(r), describeCost(r))
}

// ReplyOfCharge is Reply for a request without a row in the log.
func ReplyOfCharge(c movement.Charge) ui.Snippets {
	return replySnippet(
		ui.Sayf("about your request %s, which ended on %s (model %s):", c.Request, ui.UTC(c.EndedMS), ui.OrDash(c.Model)),
		ui.Sayf("You were charged %s for it. Its details have been deleted.", ui.ExactUSD(c.Amount)))
}

func replySnippet(paragraphs ...ui.Words) ui.Snippets {
	text := ui.Paragraphs(append([]ui.Words{"Hello,"}, paragraphs...)...)
	return ui.Snippets{ID: "reply", Tabs: []ui.Snippet{{Name: "Answer", Text: text, Prose: true}}}
}

func describeOutcome(r requestlog.Receipt) ui.Words {
	code := strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, r.Code))
	switch {
	case r.Outcome == ledger.Closed:
		return "Your program closed the connection before the answer began."
	case r.Outcome == ledger.Billed && r.Job != "":
		return "It was accepted, and its job has succeeded."
	case r.Outcome == ledger.Billed && r.Code != "":
		return ui.Sayf("The answer began and then broke off (%s).", r.Code)
	case r.Outcome == ledger.Billed:
		return ui.Sayf("It was answered after %s.", ui.FormatDuration(r.DurationMS))
	case r.Outcome == ledger.Refused:
		return ui.Sayf("It was refused with %s. %s", code, describeCode(r.Code))
	case r.Job != "":
		return ui.Sayf("Its job failed (%s). %s", r.Code, ui.Words(fault.LookupJob(fault.Code(r.Code)).Message))
	}
	return ui.Sayf("It failed with %s. %s", code, describeCode(r.Code))
}

// describeCode explains an error code and gives advice. An unknown code came from a provider.
func describeCode(code string) ui.Words {
	if meaning := Meaning(code); meaning != "" {
		return meaning
	}
	return "The error message came from the model's provider and says what to change."
}

// describeCost describes the charge of a request and the release of its hold.
func describeCost(r requestlog.Receipt) ui.Words {
	if r.Outcome != ledger.Billed {
		if r.Held > 0 {
			return ui.Sayf("You were not charged: the reserved %s was released.", ui.ExactUSD(r.Held))
		}
		return "You were not charged."
	}
	text := ui.Sayf("You were charged %s.", ui.ExactUSD(r.Cost))
	if used := describeUse(r); used != "" {
		text = ui.Sayf("You were charged %s, for %s.", ui.ExactUSD(r.Cost), used)
	}
	if r.Status == http.StatusOK && r.Code != "" {
		return ui.Sayf("%s %s", text, ui.Words("You pay for the part of the stream that was sent before it broke off."))
	}
	return text
}

// describeUse describes the tokens or the quantity of a charged request.
func describeUse(r requestlog.Receipt) ui.Words {
	switch n, q := r.Tokens, r.Quantity; {
	case n.Cached > 0:
		return ui.Sayf("%s tokens of prompt (%s of them from the cache) and %s of answer",
			ui.Thousands(n.Prompt), ui.Thousands(n.Cached), ui.Thousands(n.Completion))
	case n.Prompt > 0 || n.Completion > 0:
		return ui.Sayf("%s tokens of prompt and %s of answer", ui.Thousands(n.Prompt), ui.Thousands(n.Completion))
	case q.Unit == measure.VideoMS:
		return ui.Sayf("1 clip, %s s in all", q.Unit.Whole(q.N))
	case q.N > 0:
		return Count(q)
	}
	return ""
}

// JobMessage returns the message of a failed job for translation. Only the gateway's own sentences are
// translated, and not a quotation of the provider (see upstream.JobFailure).
func JobMessage(message string) ui.Words {
	for _, row := range fault.JobTable() {
		rest, isRow := strings.CutPrefix(message, row.Message)
		rest, uncharged := strings.CutSuffix(rest, " You were not charged.")
		if !isRow || !uncharged {
			continue
		}
		if words, isQuote := strings.CutPrefix(rest, " The provider says: "); isQuote {
			return ui.Sayf("%s The provider says: %s You were not charged.", ui.Words(row.Message), words)
		}
		if rest == "" {
			return ui.Sayf("%s You were not charged.", ui.Words(row.Message))
		}
	}
	return ui.Data(message)
}
