package show

import (
	"net/http"
	"strconv"
	"strings"

	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/requestlog"
)

// Status returns a badge with the status of a request and a label for its error code. An accepted request has
// an error code if its job failed.
func Status(status int, code string) ui.Badge {
	b := ui.Badge{Tone: ui.OK, Label: ui.Data(strconv.Itoa(status)), Title: code}
	switch {
	case fault.Code(code) == fault.ClientClosed:
		b.Tone = ui.Plain
	case status >= http.StatusInternalServerError, code != "" && status < http.StatusBadRequest:
		b.Tone = ui.Bad
	case status >= http.StatusBadRequest:
		b.Tone = ui.Warn
	}
	if code != "" {
		b.Label = ui.Sayf("%s %s", status, CodeLabel(code))
	}
	return b
}

// codeLabels describe the codes of errors and of failed jobs in a few words.
var codeLabels = map[fault.Code]ui.Words{
	fault.MissingAPIKey: "no key", fault.InvalidAPIKey: "unknown key", fault.InsufficientQuota: "not enough money",
	fault.PermissionDenied: "not allowed", fault.RateLimitExceeded: "too many at a time", fault.InvalidJSON: "invalid JSON",
	fault.InvalidEncoding: "not UTF-8", fault.InvalidRequest: "wrong field", fault.InvalidMessages: "wrong messages",
	fault.InvalidRole: "wrong role", fault.InvalidMaxTokens: "wrong limit", fault.MaxTokensTooSmall: "limit too low",
	fault.RequestTooLarge: "too large", fault.MethodNotAllowed: "wrong method", fault.NotFound: "no such path",
	fault.ModelNotFound: "no such model", fault.ModelDisabled: "model retired", fault.ModelComingSoon: "model not open yet",
	fault.ModelMaintenance: "model in maintenance", fault.ServiceUnavailable: "service unavailable",
	fault.UpstreamTimeout:     "provider too slow",
	fault.UpstreamUnavailable: "provider failed", fault.UpstreamBusy: "provider busy", fault.UpstreamConnectionError: "connection failed",
	fault.EmptyCompletion: "empty answer", fault.UpstreamError: "provider failed", fault.ContentFilter: "blocked by policy",
	fault.UpstreamPromptFilter: "prompt stopped", fault.InvalidCatalog: "faulty catalog", fault.MissingPrompt: "no prompt",
	fault.UnsupportedResolution: "resolution not offered", fault.InvalidCallbackURL: "wrong callback", fault.JobNotFound: "no such job",
	fault.ClientClosed: "client left",

	fault.ContentPolicy: "stopped by policy", fault.ModerationBlocked: "stopped by policy",
	fault.ContentPolicyViolation: "stopped by policy", fault.RenderFailed: "no clip produced", fault.InvalidMaterial: "problem with the input",
	fault.RenderTimeout: "provider too slow", fault.WaitTimeout: "waited too long", fault.UpstreamUnstable: "connection lost",
	fault.ResultFetchFailed: "result not stored",
}

// CodeLabel describes a code in a few words. It returns a provider's own code unchanged.
func CodeLabel(code string) ui.Words {
	if words, ok := codeLabels[fault.Code(code)]; ok {
		return words
	}
	return ui.Data(code)
}

// Codes returns the possible error codes of requests as options: first the codes of errors, then the
// codes of failed jobs.
func Codes() (options []ui.Option) {
	seen := map[fault.Code]bool{}
	add := func(code fault.Code) {
		if !seen[code] {
			options = append(options, ui.Option{Value: string(code), Label: ui.Sayf("%s: %s", code, CodeLabel(string(code)))})
		}
		seen[code] = true
	}
	for _, row := range fault.Table() {
		if row.Scope != fault.Operators && row.Scope != fault.JobPolls {
			add(row.Code)
		}
	}
	for _, row := range fault.JobTable() {
		add(row.Code)
	}
	add(fault.ClientClosed)
	return options
}

// Meaning explains an error and gives advice, in sentences. It returns an empty string for an
// unknown code.
func Meaning(code string) ui.Words {
	row, ok := fault.Lookup(fault.Code(code))
	if !ok {
		return ""
	}
	when := strings.ReplaceAll(row.When, "`", "")
	return ui.Words(strings.ToUpper(when[:1]) + when[1:] + ". " + strings.ReplaceAll(row.Do, "`", ""))
}

// Tokens formats the numbers of prompt and answer tokens.
func Tokens(t ledger.Tokens) ui.Text {
	if t.Prompt == 0 && t.Completion == 0 {
		return ui.Text{Text: "–", Muted: true}
	}
	return ui.Text{Text: ui.Data(ui.Thousands(t.Prompt) + " → " + ui.Thousands(t.Completion))}
}

// NoneSince returns a hint if a page of the log has no rows but older rows were not searched yet. Otherwise it
// returns nil.
func NoneSince(p requestlog.Page, pager ui.Pager) *ui.EmptyState {
	if len(p.Receipts) > 0 || !p.More {
		return nil
	}
	return &ui.EmptyState{Title: ui.Sayf("Nothing matches since %s", ui.UTC(p.BackMS)),
		Text: "A page searches a limited part of the log. " +
			"Choose a range of days to search it directly.", Link: &ui.Link{Href: pager.Next, Text: "Look further back", Button: true}}
}
