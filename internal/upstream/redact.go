package upstream

import (
	"regexp"
	"strings"
)

// redacted replaces text hidden from clients.
const redacted = "[redacted]"

// quoteMark matches an optional quotation mark around an identity.
const quoteMark = "['\"`]?"

// identity is a pattern for the gateway's identity at a provider. Its group is redacted, or the
// whole match if it has no group. A text can match only if it contains one of marks, in lower case;
// this check saves time, because patterns are slow.
type identity struct {
	marks   string
	pattern *regexp.Regexp
}

// identities matches keys, whole or masked, and names of the gateway's accounts, organisations,
// teams and projects.
var identities = [...]identity{
	// Keys.
	{"** ... …", regexp.MustCompile(`\b(?:sk|pk|rk|xai|gsk|fw|csk|pplx|nvapi|tgp|hf|r8|ms)[-_]` +
		`[A-Za-z0-9_-]*(?:\*{2,}|\.{3,}|…)[A-Za-z0-9_*-]*`)},
	{"sk pk rk xai fw pplx nvapi tgp hf r8", regexp.MustCompile(`\b(?:sk|pk|rk|xai|gsk|fw|csk|pplx|nvapi|tgp|hf|r8)[-_]` +
		`(?:[A-Za-z_-]*[0-9][A-Za-z0-9_-]{15,}|[A-Za-z0-9_-]{15,}[0-9][A-Za-z0-9_-]*)`)},
	{"aiza ya29. akia asia", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{20,}|\bya29\.[A-Za-z0-9_-]{16,}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"eyj", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9._-]+`)},
	{"***", regexp.MustCompile(`\b[A-Za-z0-9][A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_*-]*|\*{4,}[A-Za-z0-9]{2,8}\b`)},
	// Names with a prefix.
	{"org proj user acct team wrkspc workspace", regexp.MustCompile(`\b(?:org|proj|user|acct|team|wrkspc|workspace)[-_]` +
		`(?:[A-Za-z]*[0-9][A-Za-z0-9]{11,}|[A-Za-z0-9]{11,}[0-9][A-Za-z0-9]*)\b`)},
	{"arn:aws", regexp.MustCompile(`\barn:aws[a-z-]*:[^\s'"` + "`" + `,;)]*[^\s'"` + "`" + `,;).]`)},
	{"gserviceaccount", regexp.MustCompile(`\b[A-Za-z0-9._-]+@[A-Za-z0-9-]+\.iam\.gserviceaccount\.com\b`)},
	{".azure.com", regexp.MustCompile(`\b([A-Za-z0-9-]+)\.(?:openai|cognitiveservices|services\.ai)\.azure\.com\b`)},
	{"projects/", regexp.MustCompile(`(?:^|[\s'"` + "`" + `(:=])projects/([A-Za-z0-9][A-Za-z0-9.:_-]*[A-Za-z0-9])`)},
	{"project_number:", regexp.MustCompile(`\bproject_number:([0-9]+)`)},
	// Names after the word for the holder.
	{holders, regexp.MustCompile(`(?i)\b(?:team|account|organi[sz]ation|org|project|workspace|tenant|subscription|user|api key)` +
		`(?: id)?[\s:=/]+` + quoteMark + `([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`)},
	{holders, regexp.MustCompile(`(?i)\b(?:account|organi[sz]ation|workspace|tenant|subscription)(?: id)?[\s:=]+` + quoteMark +
		`([a-z_-]*[0-9][a-z0-9_-]{7,}|[a-z0-9_-]{7,}[0-9][a-z0-9_-]*)`)},
	{holders, regexp.MustCompile("(?i)\\b(?:account|organi[sz]ation|project|team|workspace|tenant|subscription)(?: id)?[\\s:=]+" +
		"['\"`]([^\\s'\"`]+)['\"`]")},
	{"suspended", regexp.MustCompile(`(?i)\baccount ([a-z0-9_-]+) is suspended`)},
}

// holders are the words for the holder of an account.
const holders = "team account org project workspace tenant subscription user key"

// redact removes the gateway's identity at a provider from a text for clients.
func redact(text string) string {
	lower := strings.ToLower(text)
	for _, i := range identities {
		switch {
		case !i.marked(lower):
			continue
		case i.pattern.NumSubexp() == 0:
			text = i.pattern.ReplaceAllLiteralString(text, redacted)
			continue
		}
		var b strings.Builder
		end := 0
		for _, at := range i.pattern.FindAllStringSubmatchIndex(text, -1) {
			b.WriteString(text[end:at[2]])
			b.WriteString(redacted)
			end = at[3]
		}
		text = b.String() + text[end:]
	}
	return text
}

// marked reports whether a text in lower case contains one of the marks.
func (i identity) marked(lower string) bool {
	for mark := range strings.FieldsSeq(i.marks) {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	return false
}

// word matches a run of the characters of a key, whole or masked.
var word = regexp.MustCompile(`[A-Za-z0-9_\-*.…]+`)

// mask matches the mask in the middle of a key.
var mask = regexp.MustCompile(`\*+|\.{2,}|…`)

// part matches a phrase with the beginning or the end of a key.
var part = regexp.MustCompile("(?i)\\b(?:starting|starts|beginning|begins|ending|ends) (?:in|with) ['\"`]?([A-Za-z0-9_-]{3,})")

// hide replaces secrets in a text, also if the middle is masked or only the first or
// last letters are shown. It skips secrets shorter than eight bytes, which could be
// ordinary words.
func hide(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= 8 {
			text = unmask(strings.ReplaceAll(text, secret, redacted), secret)
		}
	}
	return text
}

// unmask replaces words that show a part of a secret.
func unmask(text, secret string) string {
	text = part.ReplaceAllStringFunc(text, func(masked string) string {
		end := part.FindStringSubmatch(masked)[1]
		if strings.HasPrefix(secret, end) || strings.HasSuffix(secret, end) {
			return strings.TrimSuffix(masked, end) + redacted
		}
		return masked
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
