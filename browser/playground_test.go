package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// choose sets the value of a select or a text area.
func (b *tab) choose(selector, value string) {
	b.t.Helper()
	run(b, chromedp.Evaluate[any](fmt.Sprintf(`(() => { const one = document.querySelector(%q); one.value = %q;
		one.dispatchEvent(new Event("input", {bubbles: true})); one.dispatchEvent(new Event("change", {bubbles: true})); return 0 })()`,
		selector, value)))
}

// TestPlayground streams a chat with thoughts and stops it, sees its cost, generates a picture and
// a clip, plays the clip, and finds both in the gallery.
func TestPlayground(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		b := open(t, g, d.theme, d.width)
		b.signIn()
		b.visit("/console/jobs", "jobs-none")
		b.visit("/console/playground", "chat-new")
		b.chat()
		b.checkPage("chat")
		b.make("image", "a lighthouse in the fog")
		b.waitFor(`[...document.querySelectorAll("#talk img")].some((one) => one.complete && one.naturalWidth > 0)`)
		b.checkPage("image")
		b.make("video", "a paper boat in the rain")
		b.waitFor(`document.querySelector("#talk video") !== null`)
		b.checkPlays(`document.querySelector("#talk video")`)
		link := run(b, chromedp.Evaluate[string](`document.querySelector("#talk video").src`))
		b.checkPage("video")
		b.gallery()
		b.checkOpens(link)
	})
}

// TestPlaygroundOfKinds compares texts, speaks a text, and writes down a file and a recording.
func TestPlaygroundOfKinds(t *testing.T) {
	t.Parallel()
	onDisplays(t, func(t *testing.T, g *gateway, d display) {
		b := open(t, g, d.theme, d.width)
		b.signIn()
		ask := func(kind, prompt string) {
			b.open("/console/playground?kind=" + kind)
			if prompt != "" {
				b.choose("#f-prompt", prompt)
				b.do(chromedp.Click(chromedp.CSS("#send")))
				b.waitFor(`document.querySelector(".turn.model .id") !== null`)
			}
		}
		ask("embedding", "a lighthouse in the fog")
		const ranked = `((all) => all.length === 3 && all[0].value > 0.5 && all[2].value < 0.2 &&
			all[0].ariaLabel)([...document.querySelectorAll(".turn.model meter")])`
		b.waitFor(ranked + ` === "a lighthouse in the mist"`)
		b.checkPage("embedding")
		ask("rerank", "a house by the sea")
		b.waitFor(ranked + ` === "a house by the sea"`)
		ask("moderation", "violence")
		b.waitForText("Flagged")
		b.checkPage("moderation")

		ask("speech", "A lighthouse in the fog.")
		b.waitForText("24 characters")
		b.checkSounds(`document.querySelector(".turn.model audio")`)
		b.checkPage("speech")

		ask("transcription", "")
		b.recordSound()
		b.checkSounds(`document.querySelector("#attached audio")`)
		b.do(chromedp.Click(chromedp.CSS("#send")))
		b.waitForText("seconds of sound.")
		b.waitForText("of audio")
		b.checkPage("transcription")
		b.do(chromedp.Click(chromedp.CSS("#as-code summary")))
		b.do(chromedp.Click(chromedp.CSS("label[for=code-1]")))
		b.waitForText(`transcriptions.create(model="sandbox-transcription"`)
	})
}

// recordSound records until a second of sound is there.
func (b *tab) recordSound() {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS("#record")))
	b.waitForText("Stop recording")
	began := time.Now()
	b.waitFor(fmt.Sprintf("Date.now() > %d", began.Add(time.Second).UnixMilli()))
	b.do(chromedp.Click(chromedp.CSS("#record")))
}

// checkSounds checks that a player plays its sound.
func (b *tab) checkSounds(player string) {
	b.t.Helper()
	b.waitFor(player + ` !== null`)
	run(b, chromedp.Evaluate[any](`(`+player+`.muted = true, `+player+`.play().catch(() => 0), 0)`))
	b.waitFor(player + `.currentTime > 0`)
}

// chat has a conversation.
func (b *tab) chat() {
	b.t.Helper()
	b.choose("#f-model", "sandbox-reasoner")
	b.choose("#f-prompt", "Which of these is older? <b>&")
	b.do(chromedp.Click(chromedp.CSS("#send")))
	b.waitFor(`document.querySelectorAll(".turn.model .said").length > 1`) // the thoughts and the answer
	b.waitForText("Which of these is older? <b>&")
	b.waitForText("req_")
	b.waitFor(`document.querySelector(".turn.model .money, .turn.model .num, .turn.model [title$=USD]") !== null`)
	if run(b, chromedp.Evaluate[bool](`document.querySelector(".turn.model details.thoughts") === null`)) {
		b.t.Error("the thoughts are not separate from the answer")
	}
	b.choose("#f-model", "sandbox-messages")
	b.choose("#f-prompt", "And now?")
	b.do(chromedp.Click(chromedp.CSS("#send")))
	b.waitFor(`document.querySelectorAll(".turn.model .id").length === 2`)
	b.do(chromedp.Click(chromedp.CSS("#as-code summary")))
	b.waitForText("/v1/chat/completions")
}

// make submits a job.
func (b *tab) make(kind, prompt string) {
	b.t.Helper()
	b.open("/console/playground?kind=" + kind)
	b.choose("#f-prompt", prompt)
	b.do(chromedp.Click(chromedp.CSS("#send")))
	b.waitForText("Works until")
}

// checkPlays checks that a clip plays. The check runs from outside, because a clip's own page runs
// no scripts.
func (b *tab) checkPlays(clip string) {
	b.t.Helper()
	run(b, chromedp.Evaluate[any](`(`+clip+`.muted = true, `+clip+`.play().catch(() => 0), 0)`))
	deadline := time.Now().Add(3 * stepTimeout)
	for !run(b, chromedp.Evaluate[bool](clip+`.currentTime > 0 && `+clip+`.videoWidth > 0`)) {
		if time.Now().After(deadline) {
			b.fail(fmt.Errorf("%s does not play", clip))
		}
	}
}

// gallery checks the gallery's jobs.
func (b *tab) gallery() {
	b.t.Helper()
	b.open("/console/jobs")
	b.waitForText("Done 2")
	b.waitFor(`[...document.querySelectorAll(".tile img")].some((one) => one.naturalWidth > 0)`)
	b.checkPage("jobs")
	b.press(`.tile h3 a`)
	b.waitForText("Works until")
	b.checkPage("job")
	b.press(`.head a.button`)
	if got := b.value("#f-prompt"); !strings.Contains(got, "paper boat") {
		b.t.Errorf("the prompt is %q", got)
	}
}

// checkOpens checks that a clip plays when its link is opened directly. That page has an opaque
// origin, so Chromium's player sends a cross-origin request.
func (b *tab) checkOpens(link string) {
	b.t.Helper()
	b.do(chromedp.Navigate(link))
	b.checkPlays(`document.querySelector("video")`)
}
