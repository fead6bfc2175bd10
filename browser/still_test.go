package browser

import (
	"bytes"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestPicturesAreStill checks that two gateways with the same history give equal pictures, so that
// a difference between two runs shows a change of the code.
func TestPicturesAreStill(t *testing.T) {
	t.Parallel()
	today := func() int { return time.Now().UTC().YearDay() }
	var pictures [2][][]byte
	for day := -1; day != today(); { // at midnight the pages show another day
		day = today()
		for i := range pictures {
			pictures[i] = takePictures(t)
		}
	}
	for n, picture := range pictures[0] {
		if !bytes.Equal(picture, pictures[1][n]) {
			savePicture(t, "still-a.png", picture)
			savePicture(t, "still-b.png", pictures[1][n])
			t.Fatalf("the picture of page %d differs: see build/browser/still-a.png and still-b.png", n)
		}
	}
}

// takePictures starts a gateway with a history and returns pictures of its pages.
func takePictures(t *testing.T) (pictures [][]byte) {
	t.Helper()
	g := start(t)
	g.seedUsage(t)
	g.call(t, g.key, "/v1/chat/completions", 200, hello("sandbox-chat"))
	b := open(t, g, "light", 1280)
	b.signIn()
	for _, path := range []string{"/console", "/console/keys", "/console/requests", "/console/usage?by=key", "/console/billing",
		"/console/billing/statements", "/console/webhooks", "/console/settings", "/console/keys/new", "/console/nowhere",
		"second request", "first delivery"} {
		switch path {
		case "second request": // An older request: a new one may have taken less than a millisecond, and then it has no bar.
			b.open("/console/requests")
			b.press("tbody tr:nth-child(2) a.rowlink")
		case "first delivery":
			b.open("/console/webhooks")
			b.press("tbody a.rowlink")
		default:
			b.open(path)
		}
		key := b.text("main")
		picture := b.stillPicture()
		if b.text("main") != key {
			t.Errorf("%s differs after its picture", path)
		}
		pictures = append(pictures, picture)
	}
	return pictures
}

// stillPicture returns a picture that came twice in succession, because a busy browser leaves out parts of a
// page that it has not drawn yet.
func (b *tab) stillPicture() []byte {
	b.t.Helper()
	var last []byte
	for range 10 {
		picture, err := b.picture()
		if err != nil {
			b.t.Fatal(err)
		}
		if bytes.Equal(picture, last) {
			break
		}
		last = picture
	}
	return last
}

// text returns the text of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Text(chromedp.CSS(selector)))
}

// freezePage replaces everything on a page that differs between runs: times, ids, secrets, ports and
// durations. Its promise is fulfilled after the browser has drawn the changes, because a picture
// shows the last drawn frame. A tab in the background draws no frames, so the promise waits at
// most one second. unfreezePage restores the page.
const freezePage = `(() => {
  const changed = window.stilled = [];
  const zeros = (text) => text.replace(/[0-9A-Za-z+/=]/g, "0");
  const month = "(?:January|February|March|April|May|June|July|August|September|October|November|December)";
  const same = (text) => text
    .replace(/\b(sk-|whsec_)([0-9A-Za-z+/=]{4,})/g, (_, kind, rest) => kind + zeros(rest))
    .replace(/\.\.\.[0-9A-Za-z]{4}\b/g, "...0000")
    .replace(/\b([a-z]{3,5}_)([0-9a-hjkmnp-tv-z]{26})\b/g, (_, kind, rest) => kind + zeros(rest))
    .replace(/…[0-9a-z]{6}\b/g, "…000000")
    .replace(/127\.0\.0\.1:\d+/g, "127.0.0.1:8080")
    .replace(/\/media\/[0-9a-z]+/g, (link) => "/media/" + zeros(link.slice(7)))
    .replace(/\b[0-9A-Z]{5}(-[0-9A-Z]{5}){3}\b/g, zeros).replace(/^[A-Z2-7]{32}$/, zeros)
    .replace(/#[\w-]{43}/g, (token) => "#" + "0".repeat(token.length - 1))
    .replace(/\b\d+ ms\b/g, "400 ms").replace(/\b\d+(\.\d)? s\b/g, "1 s").replace(/^\d+:\d\d$/, "0:00")
    .replace(/\b20\d\d-\d\d-\d\d( \d\d:\d\d:\d\d)?/g, (_, time) => "2026-05-14" + (time ? " 12:00:00" : ""))
    .replace(/\b20\d\d-\d\d\b/g, "2026-05")
    .replace(/"created_at": ?\d+/g, '"created_at": 1778760000')
    .replace(/\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?=\d)/g, "Thu ")
    .replace(/\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b/g, "14 May")
    .replace(new RegExp("\\b\\d{1,2} " + month, "g"), "14 May")
    .replace(new RegExp(month + "( 20\\d\\d)?", "g"), (_, year) => "May" + (year ? " 2026" : ""));
  const set = (node, name, value) => { if (node[name] !== value) { changed.push([node, name, node[name]]); node[name] = value; } };
  for (const time of document.querySelectorAll("time")) set(time.firstChild, "data", "2026-05-14 12:00:00 UTC");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.closest("time, script, style")) set(node, "data", same(node.data));
  }
  const fields = document.querySelectorAll("input:not([type=hidden], [type=file], [type=checkbox], [type=radio]), textarea");
  for (const field of fields) set(field, "value", same(field.value));
  const draw = (path, d) => { changed.push([path, "d", path.getAttribute("d")]); path.setAttribute("d", d); };
  for (const path of document.querySelectorAll("svg.qr path")) draw(path, "");
  const bars = document.querySelectorAll("#latency .plotted path:not(.grid)");
  bars.forEach((path, i) => draw(path, "M0 " + (150 - 50 * i) + "h1000v50h-1000z"));
  for (const clip of document.querySelectorAll("video")) set(clip, "controls", false);
  return new Promise((done) => {
    requestAnimationFrame(() => requestAnimationFrame(() => done(0)));
    setTimeout(() => done(0), 1000);
  });
})()`

// unfreezePage restores the page after freezePage.
const unfreezePage = `(() => {
  for (const [node, name, value] of window.stilled.reverse()) { if (name === "d") node.setAttribute(name, value); else node[name] = value; }
})(), 0`
