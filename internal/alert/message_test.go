package alert

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
)

// TestMessagesAreReadable checks that chat services show the text literally and the text cannot
// mention anybody.
func TestMessagesAreReadable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		alert         Alert
		text, content string
	}{
		"a form out of service": {Alert{Line: "main", Model: "swift-1", Form: "messages", Tools: true, State: "form_out", Cause: "404"},
			"tollgate: line main, model swift-1 in the form messages with tools is out of service (form_out): 404",
			`tollgate: line main, model swift-1 in the form messages with tools is out of service (form\_out): 404`},
		"a form back in service": {Alert{Line: "main", Model: "swift-1", Form: "messages", State: inService},
			"tollgate: line main, model swift-1 in the form messages is back in service",
			"tollgate: line main, model swift-1 in the form messages is back in service"},
		"a refused key": {Alert{Line: "main", Key: "key 1 (…WXYZ)", State: "key_refused", Cause: "401"},
			"tollgate: line main continues without a refused key (key 1 (…WXYZ)): 401",
			"tollgate: line main continues without a refused key (key 1 (…WXYZ)): 401"},
		"a key accepted again": {Alert{Line: "main", Key: "key 1 (…WXYZ)", State: keyAccepted},
			"tollgate: line main has a key that is accepted again (key 1 (…WXYZ))",
			"tollgate: line main has a key that is accepted again (key 1 (…WXYZ))"},
		"a failed change of the catalog": {Alert{Change: "chg_1", State: ChangeFailed, Cause: "model a was changed"},
			"tollgate: the scheduled change chg_1 of the catalog was not applied: model a was changed",
			`tollgate: the scheduled change chg\_1 of the catalog was not applied: model a was changed`},
		"a cause with mentions": {Alert{Line: "a_b", State: "drained", Cause: "<!channel> @everyone & <@1>\n*now*"},
			"tollgate: line a_b is out of service (drained): &lt;!channel&gt; @everyone &amp; &lt;@1&gt; *now*",
			`tollgate: line a\_b is out of service (drained): \<!channel\> @everyone & \<@1\> \*now\*`},
		"Markdown": {Alert{Line: "main", State: "drained", Cause: "`a` [b](c) # ~~d~~ ||e|| \\"},
			"tollgate: line main is out of service (drained): `a` [b](c) # ~~d~~ ||e|| \\",
			"tollgate: line main is out of service (drained): \\`a\\` \\[b\\](c) \\# \\~\\~d\\~\\~ \\|\\|e\\|\\| \\\\"},
	} {
		if got := newMessage(tt.alert); got.Text != tt.text || got.Content != tt.content {
			t.Errorf("%s:\n%q\n%q", name, got.Text, got.Content)
		}
	}
}

// TestMessagesAreShort checks that the content has at most 2,000 characters, as required by Discord.
func TestMessagesAreShort(t *testing.T) {
	t.Parallel()
	for _, cause := range []string{strings.Repeat("_", 5000), strings.Repeat("é", 5000), strings.Repeat("😀", 5000)} {
		m := newMessage(Alert{Line: "main", State: "drained", Cause: cause})
		if n := len(utf16.Encode([]rune(m.Content))); n > 2000 || !strings.HasSuffix(m.Text, "…") {
			t.Errorf("the content has %d characters and ends with %q, want at most 2000 and an ellipsis", n, m.Text[len(m.Text)-8:])
		}
		if m.Cause != cause {
			t.Error("the member cause was shortened")
		}
	}
}

// TestMessagesKeepTheAlert checks that a message has all members of the alert unchanged.
func TestMessagesKeepTheAlert(t *testing.T) {
	t.Parallel()
	want := Alert{Line: "main", Model: "swift-1", Form: "chat", Tools: true, State: "form_out", Cause: "gone", At: 7}
	raw, err := json.Marshal(newMessage(want))
	if err != nil {
		t.Fatal(err)
	}
	var got Alert
	if err := json.Unmarshal(raw, &got); err != nil || got != want {
		t.Errorf("%+v of %s: %v", got, raw, err)
	}
}
