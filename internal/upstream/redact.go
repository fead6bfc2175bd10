package upstream

import (
	"regexp"
	"strings"
)

// redaction replaces text hidden from clients.
const redaction = "[redacted]"

// quoteMark matches an optional quotation mark around an identity.
const quoteMark = "['\"`]?"

// identity is a pattern for the gateway's identity at a provider. If the pattern has a group, only
// the group is redacted, otherwise the whole match. A text can match only if it contains one of
// marks, in lower case. The marks are checked first, because patterns are slow.
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

// holders lists the words for the holder of an account, separated by spaces.
const holders = "team account org project workspace tenant subscription user key"

// redact removes the gateway's identity at a provider from a text for clients.
func redact(text string) string {
	lower := strings.ToLower(text)
	for _, i := range identities {
		switch {
		case !i.hasMark(lower):
			continue
		case i.pattern.NumSubexp() == 0:
			text = i.pattern.ReplaceAllLiteralString(text, redaction)
			continue
		}
		var b strings.Builder
		end := 0
		for _, match := range i.pattern.FindAllStringSubmatchIndex(text, -1) {
			b.WriteString(text[end:match[2]])
			b.WriteString(redaction)
			end = match[3]
		}
		text = b.String() + text[end:]
	}
	return text
}

// hasMark reports whether a text in lower case contains one of the marks.
func (i identity) hasMark(lower string) bool {
	for mark := range strings.FieldsSeq(i.marks) {
		if strings.Contains(lower, mark) {
			return true
		}
	}
	return false
}

// keyWord matches a run of the characters of a key, whole or masked.
var keyWord = regexp.MustCompile(`[A-Za-z0-9_\-*.…]+`)

// keyMask matches the mask in the middle of a key.
var keyMask = regexp.MustCompile(`\*+|\.{2,}|…`)

// keyPart matches a phrase with the beginning or the end of a key.
var keyPart = regexp.MustCompile("(?i)\\b(?:starting|starts|beginning|begins|ending|ends) (?:in|with) ['\"`]?([A-Za-z0-9_-]{3,})")

// hideSecrets replaces secrets in a text, also if the middle is masked or only the first or
// last letters are shown. It skips secrets shorter than eight bytes, because they could be
// ordinary words.
func hideSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= 8 {
			text = unmask(strings.ReplaceAll(text, secret, redaction), secret)
		}
	}
	return text
}

// unmask replaces words that show a part of a secret.
func unmask(text, secret string) string {
	text = keyPart.ReplaceAllStringFunc(text, func(phrase string) string {
		shown := keyPart.FindStringSubmatch(phrase)[1]
		if strings.HasPrefix(secret, shown) || strings.HasSuffix(secret, shown) {
			return strings.TrimSuffix(phrase, shown) + redaction
		}
		return phrase
	})
	return keyWord.ReplaceAllStringFunc(text, func(w string) string {
		core := w
		if !strings.HasSuffix(w, "..") {
			core = strings.TrimSuffix(w, ".")
		}
		gaps := keyMask.FindAllStringIndex(core, -1)
		if len(gaps) == 0 {
			return w
		}
		head, tail := core[:gaps[0][0]], core[gaps[len(gaps)-1][1]:]
		if len(head)+len(tail) < 3 || !strings.HasPrefix(secret, head) || !strings.HasSuffix(secret, tail) {
			return w
		}
		return redaction + w[len(core):]
	})
}
