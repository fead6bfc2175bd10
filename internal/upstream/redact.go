package upstream

import (
	"regexp"
	"strings"
)

// redacted stands in place of what clients do not see.
const redacted = "[redacted]"

// quoteMark is what may stand before or after an identity.
const quoteMark = "['\"`]?"

// identity is a pattern of what identifies us at a provider. Its group is what is
// hidden; without one, all of it is. marks are words, in lower case, without one
// of which nothing can match: patterns are slow.
type identity struct {
	marks   string
	pattern *regexp.Regexp
}

// identities are keys, whole or masked, and the names of our accounts,
// organisations, teams and projects, at whichever provider.
var identities = [...]identity{
	// Keys.
	{"** ... …", regexp.MustCompile(`\b(?:sk|pk|rk|xai|gsk|fw|csk|pplx|nvapi|tgp|hf|r8|ms)[-_]` +
		`[A-Za-z0-9_-]*(?:\*{2,}|\.{3,}|…)[A-Za-z0-9_*-]*`)},
	{"sk pk rk xai fw pplx nvapi tgp hf r8", regexp.MustCompile(`\b(?:sk|pk|rk|xai|gsk|fw|csk|pplx|nvapi|tgp|hf|r8)[-_]` +
		`(?:[A-Za-z_-]*[0-9][A-Za-z0-9_-]{15,}|[A-Za-z0-9_-]{15,}[0-9][A-Za-z0-9_-]*)`)},
	{"aiza ya29. akia asia", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{20,}|\bya29\.[A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"eyj", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9._-]+`)},
	{"***", regexp.MustCompile(`\b[A-Za-z0-9][A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_*-]*|\*{4,}[A-Za-z0-9]{2,8}\b`)},
	// Names that tell what they name.
	{"org proj user acct team wrkspc workspace", regexp.MustCompile(`\b(?:org|proj|user|acct|team|wrkspc|workspace)[-_]` +
		`(?:[A-Za-z]*[0-9][A-Za-z0-9]{11,}|[A-Za-z0-9]{11,}[0-9][A-Za-z0-9]*)\b`)},
	{"arn:aws", regexp.MustCompile(`\barn:aws[a-z-]*:[^\s'"` + "`" + `,;)]*[^\s'"` + "`" + `,;).]`)},
	{"gserviceaccount", regexp.MustCompile(`\b[A-Za-z0-9._-]+@[A-Za-z0-9-]+\.iam\.gserviceaccount\.com\b`)},
	{".azure.com", regexp.MustCompile(`\b([A-Za-z0-9-]+)\.(?:openai|cognitiveservices|services\.ai)\.azure\.com\b`)},
	{"projects/", regexp.MustCompile(`(?:^|[\s'"` + "`" + `(:=])projects/([A-Za-z0-9][A-Za-z0-9.:_-]*[A-Za-z0-9])`)},
	{"project_number:", regexp.MustCompile(`\bproject_number:([0-9]+)`)},
	// What stands after the word for it.
	{holders, regexp.MustCompile(`(?i)\b(?:team|account|organi[sz]ation|org|project|workspace|tenant|subscription|user|api key)` +
		`(?: id)?[\s:=/]+` + quoteMark + `([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`)},
	{holders, regexp.MustCompile(`(?i)\b(?:account|organi[sz]ation|workspace|tenant|subscription)(?: id)?[\s:=]+` + quoteMark +
		`([a-z_-]*[0-9][a-z0-9_-]{7,}|[a-z0-9_-]{7,}[0-9][a-z0-9_-]*)`)},
	{holders, regexp.MustCompile("(?i)\\b(?:account|organi[sz]ation|project|team|workspace|tenant|subscription)(?: id)?[\\s:=]+" +
		"['\"`]([^\\s'\"`]+)['\"`]")},
	{"suspended", regexp.MustCompile(`(?i)\baccount ([a-z0-9_-]+) is suspended`)},
}

// holders are the words of those who hold an account.
const holders = "team account org project workspace tenant subscription user key"

// redact hides in a text for clients what identifies us at a provider.
func redact(text string) string {
	lower := strings.ToLower(text)
	for _, one := range identities {
		switch {
		case !one.marked(lower):
			continue
		case one.pattern.NumSubexp() == 0:
			text = one.pattern.ReplaceAllLiteralString(text, redacted)
			continue
		}
		var b strings.Builder
		end := 0
		for _, at := range one.pattern.FindAllStringSubmatchIndex(text, -1) {
			b.WriteString(text[end:at[2]])
			b.WriteString(redacted)
			end = at[3]
		}
		text = b.String() + text[end:]
	}
	return text
}

// marked tells whether one of the marks is in a text in lower case.
func (i identity) marked(lower string) bool {
	for mark := range strings.FieldsSeq(i.marks) {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	return false
}

// word is a run of what a key, or the masked form of one, is made of.
var word = regexp.MustCompile(`[A-Za-z0-9_\-*.…]+`)

// mask is what hides the middle of a key.
var mask = regexp.MustCompile(`\*+|\.{2,}|…`)

// part is how a sentence names the ends of a key.
var part = regexp.MustCompile("(?i)\\b(?:starting|starts|beginning|begins|ending|ends) (?:in|with) ['\"`]?([A-Za-z0-9_-]{3,})")

// hide replaces secrets in a text, also where the middle is masked or the ends
// are named: a provider that shows the first letters of a key, or the last ones,
// shows a part of it. Secrets shorter than eight bytes are left alone: they would
// blank ordinary words.
func hide(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= 8 {
			text = unmask(strings.ReplaceAll(text, secret, redacted), secret)
		}
	}
	return text
}

// unmask replaces what shows a part of a secret.
func unmask(text, secret string) string {
	text = part.ReplaceAllStringFunc(text, func(said string) string {
		end := part.FindStringSubmatch(said)[1]
		if strings.HasPrefix(secret, end) || strings.HasSuffix(secret, end) {
			return strings.TrimSuffix(said, end) + redacted
		}
		return said
	})
	return word.ReplaceAllStringFunc(text, func(w string) string {
		bare := w
		if !strings.HasSuffix(w, "..") {
			bare = strings.TrimSuffix(w, ".")
		}
		gaps := mask.FindAllStringIndex(bare, -1)
		if len(gaps) == 0 {
			return w
		}
		head, tail := bare[:gaps[0][0]], bare[gaps[len(gaps)-1][1]:]
		if len(head)+len(tail) < 3 || !strings.HasPrefix(secret, head) || !strings.HasSuffix(secret, tail) {
			return w
		}
		return redacted + w[len(bare):]
	})
}
