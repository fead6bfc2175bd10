package browser

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// stepTimeout bounds each wait in a tab. A busy machine takes several times longer than an idle
// one.
const stepTimeout = 3 * time.Minute

// axe is the script of the accessibility checker. It is installed from its lock file if it is
// missing.
var axe = sync.OnceValues(func() (string, error) {
	const file = "axe/node_modules/axe-core/axe.min.js"
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		install := exec.Command("npm", "ci", "--no-audit", "--no-fund", "--prefer-offline")
		install.Dir = "axe"
		if out, err := install.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		raw, err = os.ReadFile(file)
	}
	return string(raw), err
})

// process is the browser shared by all tests.
type process struct {
	ctx context.Context
	end func()
}

// chromium starts the browser once; TestMain ends it.
var chromium = sync.OnceValues(func() (process, error) {
	options := chromedp.DefaultExecAllocatorOptions[:]
	// Debian's headless shell renders a page in half the processor time.
	if shell, err := exec.LookPath("chromium-headless-shell"); err == nil {
		options = append(options, chromedp.ExecPath(shell))
	}
	options = append(options,
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("hide-scrollbars", true), chromedp.Env("TZ=Europe/Berlin"),
		// Pages may use a fake microphone with a beep.
		chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("use-fake-device-for-media-stream", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(ctx)
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return process{}, fmt.Errorf("start Chromium: %w", err)
	}
	return process{ctx, func() { cancel(); stop() }}, nil
})

// TestMain ends the browser after all tests. Without Chromium it runs none; `make test` then lists
// what did not run.
func TestMain(m *testing.M) {
	if os.Getenv("TOLLGATE_TEST_BROWSER") == "absent" {
		fmt.Println("Chromium is not installed: the console was NOT tested in a browser")
		os.Exit(0)
	}
	code := m.Run()
	if browser, err := chromium(); err == nil {
		browser.end()
	}
	os.Exit(code)
}

// tab is a browser tab with its own profile. It records forbidden actions of pages.
type tab struct {
	t   *testing.T
	ctx context.Context
	g   *gateway

	// sameColors reports whether another tab of the test checks the contrasts of the same pages in
	// the same theme.
	sameColors bool
	noScripts  bool // see withoutScripts

	mu     sync.Mutex
	bad    []string
	size   float64                    // bytes received since the last open or check, including headers, without clips
	played map[network.RequestID]bool // requests for clips
}

// open opens a tab. theme is light or dark; width is the width of the screen.
func open(t *testing.T, g *gateway, theme string, width int64) *tab {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, g: g, played: map[network.RequestID]bool{}}
	if err := chromedp.Listen(ctx, b.record); err != nil {
		t.Fatalf("no browser: %v", err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
	// A tab in the background draws no frames unless it seems to have the focus.
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, 900))
	return b
}

// withoutScripts turns scripts off in the tab.
func (b *tab) withoutScripts() {
	b.t.Helper()
	off := emulation.SetScriptExecutionDisabledParams{Value: true}
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, off); err != nil {
		b.t.Fatal(err)
	}
	b.noScripts = true
}

// record records a forbidden action of a page.
func (b *tab) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.bad = append(b.bad, "console: "+e.Entry.Text+" "+e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		b.bad = append(b.bad, "exception: "+e.ExceptionDetails.Text)
	case *network.EventRequestWillBeSent:
		// Chromium's player loads its buttons from data: addresses.
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "blob" && u.Scheme != "data" &&
			!strings.HasPrefix(e.Request.URL, b.g.url+"/") {
			b.bad = append(b.bad, "asks "+e.Request.URL)
		}
		if e.Type == network.ResourceTypeMedia {
			b.played[e.RequestID] = true
		}
	case *network.EventLoadingFinished:
		if !b.played[e.RequestID] {
			b.size += e.EncodedDataLength
		}
	}
}

// expect drops a recorded fault that the test caused on purpose.
func (b *tab) expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var rest []string
	for _, bad := range b.bad {
		if !strings.Contains(bad, text) {
			rest = append(rest, bad)
		}
	}
	b.bad = rest
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.fail(err)
	}
}

// fail ends the test and keeps a picture of the page.
func (b *tab) fail(err error) {
	b.t.Helper()
	b.shoot("failed")
	b.t.Fatalf("%v; see build/browser/%s", err, b.file("failed"))
}

// run runs one action and returns its result.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	out, err := chromedp.Run(ctx, action)
	if err != nil {
		b.fail(err)
	}
	return out
}

// open goes to a page.
func (b *tab) open(path string) {
	b.t.Helper()
	b.mu.Lock()
	b.size = 0
	b.mu.Unlock()
	b.do(chromedp.Navigate(b.g.url + path))
}

// press clicks an element that leads to another page, and waits for that page.
func (b *tab) press(selector string) {
	b.t.Helper()
	b.navigate(chromedp.Click(chromedp.CSS(selector)))
}

// navigate runs steps that lead to another page, and waits for that page.
func (b *tab) navigate(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, steps...); err != nil {
		b.fail(err)
	}
}

// fill replaces the text of a field, like a paste.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.do(chromedp.Clear(chromedp.CSS(selector)), chromedp.Focus(chromedp.CSS(selector)))
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.fail(err)
	}
}

// waitForText waits until a text is on the page.
func (b *tab) waitForText(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("no %q", text), `(text) => document.body?.innerText.includes(text)`, text)
}

// waitFor waits until a script returns true.
func (b *tab) waitFor(script string) {
	b.t.Helper()
	b.until("never true: "+script, `() => `+script)
}

// until calls a function in the page until it returns true. If the page was just replaced, until
// continues with the new page.
func (b *tab) until(failure, function string, args ...any) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.PollFunction[bool](function,
			chromedp.WithPollingArgs(args...), chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0)))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "context") && !strings.Contains(err.Error(), "navigated") {
			b.fail(fmt.Errorf("%s: %w", failure, err))
		}
	}
}

// value reads a property of an element.
func (b *tab) value(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Value(chromedp.CSS(selector)))
}

func (b *tab) file(name string) string {
	return strings.ReplaceAll(b.t.Name()+"-"+name, "/", "-") + ".png"
}

// maxPicture is the maximum height of a picture in pixels. The API reference is fifty times as
// high, and a picture of all of it takes as long as fifty other pages.
const maxPicture = 6000

// picture returns a picture of the page after freezePage has run.
func (b *tab) picture() ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.ctx, stepTimeout)
	defer cancel()
	wait := []chromedp.EvaluateOption{chromedp.EvalAwaitPromise}
	if b.noScripts { // no promise of the page is ever fulfilled
		wait = nil
	}
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](freezePage, wait...)); err != nil {
		return nil, err
	}
	size, err := chromedp.Run(ctx,
		chromedp.Evaluate[[]float64](`[document.documentElement.clientWidth, document.documentElement.scrollHeight]`))
	if err != nil {
		return nil, err
	}
	yes := true
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &yes,
		OptimizeForSpeed: &yes, Clip: &page.Viewport{Width: size[0], Height: min(size[1], maxPicture), Scale: 1}})
	if err != nil {
		return nil, err
	}
	_, err = chromedp.Run(ctx, chromedp.Evaluate[any](unfreezePage))
	return picture.Data, err
}

// shoot saves a picture of the page in build/browser.
func (b *tab) shoot(name string) {
	picture, err := b.picture()
	if err != nil {
		b.t.Errorf("no picture: %v", err)
		return
	}
	savePicture(b.t, b.file(name), picture)
}

// savePicture writes a picture to build/browser.
func savePicture(t *testing.T, name string, picture []byte) {
	path := filepath.Join("../build/browser", name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, picture, 0o600)
	}
	if err != nil {
		t.Errorf("no picture: %v", err)
	}
}

// checkPage saves a picture of the open page, and checks the page and its accessibility.
func (b *tab) checkPage(name string) {
	b.t.Helper()
	b.checkLayout(name)
	script, err := axe()
	if err != nil {
		b.t.Fatal(err)
	}
	run(b, chromedp.Evaluate[any](script+";0"))
	// Rules whose impact is minor or moderate are off.
	for _, v := range run(b, chromedp.Evaluate[[]string](fmt.Sprintf(`(() => {
		const rules = {};
		for (const rule of axe._audit.rules) {
			if (!["serious", "critical"].includes(rule.impact) || %t && rule.id === "color-contrast") rules[rule.id] = {enabled: false};
		}
		return axe.run(document, {resultTypes: ["violations"], rules}).then((found) => found.violations.map((v) =>
			v.id + ": " + v.help + ": " + v.nodes.map((node) => node.html).join(" ")));
	})()`, b.sameColors), chromedp.EvalAwaitPromise)) {
		b.t.Errorf("%s: axe: %s", name, v)
	}
}

// visit goes to a page and checks it.
func (b *tab) visit(path, name string) {
	b.t.Helper()
	b.open(path)
	b.checkPage(name)
}

// checkLayout saves a picture of the open page. It checks the layout and size of the page, and that
// the page did nothing forbidden.
func (b *tab) checkLayout(name string) {
	b.t.Helper()
	b.shoot(name)
	for _, bad := range run(b, chromedp.Evaluate[[]string](layoutFaults)) {
		b.t.Errorf("%s: %s", name, bad)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, bad := range b.bad {
		b.t.Errorf("%s: %s", name, bad)
	}
	b.bad = nil
	limit := 250_000.0
	if strings.HasSuffix(name, "reference") { // one document about a whole API
		limit = 400_000
	}
	if b.size > limit {
		b.t.Errorf("%s: %.0f bytes", name, b.size)
	}
	b.size = 0
}

// layoutFaults finds pages and tables wider than the screen, and overlapping texts.
const layoutFaults = `(() => {
  const faults = [], texts = [];
  for (const one of document.querySelectorAll(".tablewrap")) {
    const wide = one.scrollWidth - one.clientWidth;
    if (one.checkVisibility() && wide > 1) faults.push("a table is " + wide + " px wider than the screen: " + one.ariaLabel);
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) faults.push("the page is " + wide + " px wider than the screen");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("dialog:not([open]), .hidden, .skip, option, script, noscript")) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      const head = parent.closest("thead");
      if (head && getComputedStyle(head).position === "absolute") continue; // a phone's cards have their own labels
      if (box.width < 2 || box.height < 2) continue;
      const clip = parent.closest("pre, .tablewrap, .who");
      const right = clip ? Math.min(box.right, clip.getBoundingClientRect().right) : box.right;
      texts.push({ left: box.left, right, top: box.top + 3, bottom: box.bottom - 3, node, word: node.textContent.trim().slice(0, 40) });
    }
  }
  for (let i = 0; i < texts.length; i++) {
    for (let j = i + 1; j < texts.length; j++) {
      const a = texts[i], b = texts[j];
      if (a.node !== b.node && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1) {
        faults.push("texts on each other: " + a.word + " | " + b.word);
      }
    }
  }
  return faults;
})()`
