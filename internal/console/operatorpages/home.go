package operatorpages

import (
	"cmp"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/line"
	"tollgate/internal/line/health"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/topup"
	"tollgate/internal/webhook"
)

// homeFragment is the overview of the service. It is updated every ten seconds.
type homeFragment struct {
	Address          string   // address of its updates
	Announcement     ui.Words // read out by screen readers after a change
	OK               bool
	Problems         []ui.Notice
	Stats            ui.FigureRow
	Today            ui.FigureRow
	Sandbox          ui.Group // today's requests to sandbox lines, which all figures leave out
	Charges          ui.Chart
	Counts           ui.Chart
	Latency          *ui.Chart // of the last minutes, or nil if no request was answered
	Top              ui.Bars
	Lines            ui.DataTable
	Margins          ui.DataTable
	First            ui.FirstSteps // to the first paying customer; empty after the last step
	Missing          *missingSettings
	PublicURLWarning *ui.Notice // warns that public_url is not set; may be nil
}

// The overview reports a receiver that has failed for longer than maxReceiverFailure, and a mail or a job that
// has waited for longer than maxMailWait or maxQueueWait. It shows at most maxProblems problems.
const (
	maxReceiverFailure = time.Hour
	maxMailWait        = 15 * time.Minute
	maxQueueWait       = 10 * time.Minute
	maxProblems        = 20
)

// serviceStatus is the data of the overview.
type serviceStatus struct {
	nowMS        int64
	writable     error // nil if the database accepts writes
	nodes        node.Members
	differences  []node.SettingsDifference
	lines        []line.CombinedStatus
	recent       show.Recent
	load         job.Load
	failing      []webhook.Failing
	mails        mail.Waiting
	payments     []topup.Problem
	changes      []catalog.ScheduledChange // failed changes
	audits       []operator.AuditOutcome
	setup        setup
	holds        [2]ledger.OpenHolds // of requests, and of jobs
	bytes        int64               // size of the database in bytes
	sandbox      catalog.SandboxUse
	sandboxToday spending.Sums // today's requests to sandbox lines
	today        spending.Sums
	month        monthCharts
	top          []topAccount
}

// topAccount is an account with high spending today.
type topAccount struct {
	name string
	spending.UsageRow
}

// shownTop is the number of accounts on the page. maxSpenders bounds the accounts read.
const (
	shownTop    = 9
	maxSpenders = 10_000
)

// todayTx reads today's sums, the accounts with the highest charges, and the requests to sandbox lines.
func (w *serviceStatus) todayTx(tx *store.Tx) error {
	q := spending.Query{Since: books.DayOf(w.nowMS), Except: spending.RequestSet(w.sandbox), By: []spending.By{spending.ByAccount},
		Limit: maxSpenders}
	spent, err := spending.ReadTx(tx, q)
	if errors.Is(err, spending.ErrTooManyRows) { // read only the total
		q.By, q.Limit = nil, 1
		spent, err = spending.ReadTx(tx, q)
	}
	if err != nil {
		return err
	}
	if w.sandboxToday, err = spending.ExcludedTx(tx, q); err != nil {
		return err
	}
	slices.SortStableFunc(spent, func(a, b spending.UsageRow) int { return cmp.Compare(b.Charged, a.Charged) })
	w.today, w.top = spending.Sums{}, nil
	for i, s := range spent {
		w.today = w.today.Plus(s.Sums)
		if i >= shownTop || s.Charged == 0 || s.Account == "" {
			continue
		}
		a, err := account.GetTx(tx, s.Account)
		if err != nil {
			return err
		}
		w.top = append(w.top, topAccount{a.Name, s})
	}
	return nil
}

// monthCharts are the charts of the last 30 days, as read at readMS.
type monthCharts struct {
	readMS          int64
	sandbox         catalog.SandboxUse // left out of the charts
	charges, counts ui.Chart
}

// chartCache caches the charts of the overview for monthMaxAge, because they read the usage of all accounts.
type chartCache struct {
	mu     sync.Mutex
	charts monthCharts // under mu
}

const monthMaxAge = time.Minute

// chartsTx returns the charts. Today's values are current. Other values are at most monthMaxAge old.
func (m *chartCache) chartsTx(tx *store.Tx, w *serviceStatus) (c monthCharts, err error) {
	if c, err = m.readTx(tx, w); err != nil {
		return c, err
	}
	c.charges.Series = withToday(c.charges.Series, int64(w.today.Charged))
	c.counts.Series = withToday(c.counts.Series, w.today.Requests-w.today.Failed, w.today.Failed)
	return c, nil
}

// withToday returns a copy of series in which values are the last values.
func withToday(series []ui.ChartSeries, values ...int64) []ui.ChartSeries {
	series = slices.Clone(series)
	for i := range series {
		series[i].Values = slices.Clone(series[i].Values)
		series[i].Values[len(series[i].Values)-1] = values[i]
	}
	return series
}

// readTx returns the cached charts, or reads the charts if the cache is too old.
func (m *chartCache) readTx(tx *store.Tx, w *serviceStatus) (c monthCharts, err error) {
	m.mu.Lock()
	c = m.charts
	m.mu.Unlock()
	same := books.DayOf(w.nowMS) == books.DayOf(c.readMS) && reflect.DeepEqual(w.sandbox, c.sandbox)
	if age := w.nowMS - c.readMS; age >= 0 && age < monthMaxAge.Milliseconds() && same {
		return c, nil
	}
	c.readMS, c.sandbox = w.nowMS, w.sandbox
	if c.charges, c.counts, err = show.MonthTx(tx, "", spending.RequestSet(w.sandbox)); err != nil {
		return c, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charts = c
	return c, nil
}

func (c *console) readStatus(v *page.Visit) (w serviceStatus, err error) {
	w.writable = c.Ledger.Writable()
	c.refreshNow(v, "this node's report about its lines", c.Lines.Report)
	err = v.View(func(tx *store.Tx) error {
		for _, read := range []func() error{
			func() (err error) { w.nowMS, err = tx.NowMS(); return err },
			func() (err error) { w.nodes, err = node.MembersTx(tx); return err },
			func() (err error) {
				if len(w.nodes.Living()) > 1 {
					w.differences, err = node.DifferencesTx(tx)
				}
				return err
			},
			func() error {
				reports, err := line.ReportsTx(tx)
				w.lines = line.Join(reports)
				return err
			},
			func() (err error) { w.sandbox, err = catalog.SandboxTx(tx); return err },
			func() (err error) { w.recent, err = show.RecentTx(tx, w.nowMS, w.sandbox); return err },
			func() (err error) { w.load, err = job.LoadTx(tx); return err },
			func() (err error) { w.failing, err = webhook.FailingTx(tx, maxProblems); return err },
			func() (err error) {
				if c.Mails.On() {
					w.mails, err = mail.WaitingTx(tx)
				}
				return err
			},
			func() (err error) {
				if c.Topups != nil {
					w.payments, _, err = topup.ProblemsTx(tx, "", maxProblems)
				}
				return err
			},
			func() (err error) { w.changes, err = catalog.FailedChangesTx(tx); return err },
			func() (err error) { w.audits, err = operator.AuditsTx(tx, 1); return err },
			func() error { return w.todayTx(tx) },
			func() (err error) { w.month, err = c.month.chartsTx(tx, &w); return err },
			func() (err error) { w.bytes, err = tx.Size(); return err },
			func() (err error) { w.holds[0], w.holds[1], err = ledger.HeldTx(tx); return err },
			func() (err error) { w.setup, err = c.setupTx(tx); return err },
		} {
			if err := read(); err != nil {
				return err
			}
		}
		return nil
	})
	return w, err
}

func (c *console) home(v *page.Visit) (page.Responder, error) {
	fragment, err := c.homeFragment(v)
	return page.FullPage{Name: "home", Title: "Status", Main: fragment}, err
}

func (c *console) liveHome(v *page.Visit) (page.Responder, error) {
	fragment, err := c.homeFragment(v)
	return page.Fragment{Name: "now", Main: fragment}, err
}

// homeFragment returns the status of the service.
func (c *console) homeFragment(v *page.Visit) (homeFragment, error) {
	w, err := c.readStatus(v)
	if err != nil {
		return homeFragment{}, err
	}
	content := homeFragment{Address: page.Base + "/operator/live", Problems: w.problems(), Stats: append(w.stats(), c.databaseFigure(w)),
		Today: append(earnings(true, w.today), w.held()), Sandbox: show.SandboxNote(w.sandboxToday, w.sandbox.Lines),
		Charges: w.month.charges, Counts: w.month.counts, Latency: w.recent.Latency,
		Top: w.topBars(), Lines: linesTable(w.lines, nil), Margins: marginTable(w.realLines())}
	content.OK = len(content.Problems) == 0
	content.Announcement = "All is well"
	if n := len(content.Problems); n == 1 {
		content.Announcement = "1 thing needs you"
	} else if n > 1 {
		content.Announcement = ui.Sayf("%s things need you", n)
	}
	content.First, content.Missing, content.PublicURLWarning = c.steps(w.setup), c.missing(w.setup), c.publicURLWarning()
	return content, nil
}

func (c *console) databaseFigure(w serviceStatus) ui.Figure {
	name := "SQLite"
	if c.DB.Dialect() == store.PostgreSQL {
		name = "PostgreSQL"
	}
	note := ui.Data(ui.FormatBytes(w.bytes))
	if duration := c.DB.LastCommit(); duration > 0 {
		note = ui.Sayf("%s, last commit in %s", note, ui.FormatDuration(max(1, duration.Milliseconds())))
	}
	return ui.Figure{Label: "Database", Value: ui.Text{Text: ui.Data(name)}, Note: ui.Text{Text: note}}
}

// problems returns the problems that need the operator, the worst first.
func (w serviceStatus) problems() []ui.Notice {
	var all []ui.Notice
	add := func(tone ui.Tone, title, text ui.Words, href string, word ui.Words) {
		if len(all) < maxProblems {
			all = append(all, ui.Notice{Tone: tone, Title: title, Text: text, Link: &ui.Link{Href: page.Base + href, Text: word}})
		}
	}
	if w.writable != nil {
		add(ui.Bad, "The database does not accept writes.", ui.Sayf("New requests are rejected until it does. %s",
			w.writable.Error()), "/operator/books",
			"Books")
	}
	explained := false // the notice about a line explains failing requests
	for _, l := range w.lines {
		if isOut(l.Status) || l.State == health.StateHalfOpen {
			explained = true
			add(ui.Bad, ui.Sayf("Line %s: %s.", l.Line, show.StateLabel(l.State)), outReason(l.Status),
				"/operator/lines/"+url.PathEscape(l.Line), "Line")
		}
	}
	for _, l := range w.lines {
		for _, out := range l.ModelsOut {
			add(ui.Warn, ui.Sayf("Line %s gets no requests for %s.", l.Line, out.Model), ui.Data(out.Cause),
				"/operator/lines/"+url.PathEscape(l.Line), "Line")
		}
	}
	if w.recent.Failing() && !explained {
		add(ui.Bad, ui.Sayf("%s of %s failed in the last 10 minutes.", ui.Thousands(w.recent.Failed), ui.Requests(w.recent.Requests)),
			"These are errors of the service (5xx). The request log shows the causes.",
			"/operator/requests", "Requests")
	}
	for epoch, alive := range w.nodes {
		if !alive {
			add(ui.Warn, "A node has died.",
				ui.Sayf("Another node has taken over the work of %s. The dead node leaves this list after a day.", epoch),
				"/operator/lines", "Lines")
		}
	}
	for _, d := range w.differences {
		if len(all) < maxProblems {
			all = append(all, ui.Notice{Tone: ui.Warn, Title: "Nodes run with different settings.", Text: differenceText(d)})
		}
	}
	for _, f := range w.failing {
		if since := time.Duration(w.nowMS-f.SinceMS) * time.Millisecond; since > maxReceiverFailure {
			add(ui.Warn, ui.Sayf("A receiver has failed for %s.", ui.FormatDuration(since.Milliseconds())),
				ui.Sayf("%s has %s events waiting.", f.URL, ui.Thousands(f.Waiting)), "/operator/accounts/"+f.Account+"?view=webhook", "Account")
		}
	}
	if len(w.payments) > 0 {
		text := ui.Sayf("%s.", show.ProblemText(w.payments[0]))
		if n := len(w.payments) - 1; n > 0 {
			text = ui.Sayf("%s %s.", text, ui.Plural(n, "%s more problem", "%s more problems"))
		}
		add(ui.Warn, "A payment needs you:", text, "/operator/top-ups", "Top-ups")
	}
	for _, c := range w.changes {
		add(ui.Bad, "A scheduled change of the catalog was not applied.", ui.Sayf("%s. Apply it, or schedule it again.", c.Reason),
			changesPath+"/"+c.ID, "Change")
	}
	if w.mails.Oldest > maxMailWait {
		add(ui.Bad, ui.Sayf("The oldest mail has waited for %s.", ui.FormatDuration(w.mails.Oldest.Milliseconds())),
			ui.Sayf("Mails waiting: %s. The page of mails shows the answers of the SMTP server.", ui.Thousands(w.mails.Mails)),
			mailsPath+"?state=failed", "Mails")
	}
	if waiting := time.Duration(w.nowMS-w.load.OldestMS) * time.Millisecond; w.load.OldestMS > 0 && waiting > maxQueueWait {
		add(ui.Warn, ui.Sayf("The oldest job has waited for %s.", ui.FormatDuration(waiting.Milliseconds())),
			ui.Sayf("Jobs waiting: %s.", formatCapped(w.load.Waiting)),
			"/operator/jobs?status=queued", "Jobs")
	}
	if len(w.audits) > 0 && w.audits[0].EndedMS > 0 && !w.audits[0].Findings.OK {
		add(ui.Bad, "The books do not agree.", booksLabel(w.audits[0]), "/operator/books", "Books")
	}
	return all
}

func differenceText(d node.SettingsDifference) ui.Words {
	text := ui.Sayf("%s: one value on %s", strings.Join(d.Settings, ", "), strings.Join(d.Nodes[0], ", "))
	for _, group := range d.Nodes[1:] {
		text = ui.Sayf("%s, another on %s", text, strings.Join(group, ", "))
	}
	return ui.Sayf("%s. Start all nodes with the same settings.", text)
}

// formatCapped formats a count capped at 1001.
func formatCapped(n int64) string {
	if n > 1000 {
		return "1,000+"
	}
	return ui.Thousands(n)
}

func (w serviceStatus) stats() ui.FigureRow {
	usable, living := 0, len(w.nodes.Living())
	var inFlight int64
	for _, l := range w.lines {
		if !isOut(l.Status) && takesCalls(l.State) {
			usable++
		}
		inFlight += l.InFlight
	}
	queue := ui.Words("nothing waits")
	if w.load.OldestMS > 0 {
		queue = ui.Sayf("the oldest for %s", ui.FormatDuration(w.nowMS-w.load.OldestMS))
	}
	books, when := ui.Text{Text: "not run yet"}, ui.Text{Text: "run an audit to see"}
	if len(w.audits) > 0 {
		books.Text = booksLabel(w.audits[0])
		when.Text = ui.UTC(w.audits[0].BeganMS)
	}
	text := func(w ui.Words) ui.Text { return ui.Text{Text: w} }
	return ui.FigureRow{
		{Label: "Lines in use", Value: text(
			ui.Sayf("%s of %s", strconv.Itoa(usable), strconv.Itoa(len(w.lines)))),
			Note: text(ui.Sayf("%s calls in flight", ui.Thousands(inFlight)))},
		{Label: "Jobs waiting", Value: text(ui.Data(formatCapped(w.load.Waiting))),
			Note: text(ui.Sayf("%s, %s running", queue, formatCapped(w.load.Running)))},
		{Label: "Nodes", Value: text(ui.Sayf("%s / %s", strconv.Itoa(living), strconv.Itoa(len(w.nodes)))),
			Note: text("running / seen in 24 h")},
		{Label: "Books", Value: ui.Link{Href: page.Base + "/operator/books", Text: books.Text}, Note: when},
	}
}

// held returns the amount on hold on all nodes.
func (w serviceStatus) held() ui.Figure {
	return ui.Figure{Label: "On hold", Value: ui.Money{Amount: w.holds[0].Amount + w.holds[1].Amount},
		Note: ui.Text{Text: ui.Sayf("%s, %s", ui.Requests(w.holds[0].Holds), ui.Plural(int(w.holds[1].Holds), "%s job", "%s jobs"))}}
}

func (w serviceStatus) topBars() ui.Bars {
	var bars ui.Bars
	for _, t := range w.top {
		bars = append(bars, ui.Bar{Label: ui.Data(t.name), Href: page.Base + "/operator/accounts/" + t.Account,
			Value:   ui.Money{Amount: t.Charged},
			Percent: ui.Share(t.Charged, w.top[0].Charged)})
	}
	return bars
}

// realLines returns the lines without the sandbox.
func (w serviceStatus) realLines() []line.CombinedStatus {
	return slices.DeleteFunc(slices.Clone(w.lines), func(l line.CombinedStatus) bool { return slices.Contains(w.sandbox.Lines, l.Line) })
}

// marginTable lists charges and provider costs by line and model since the nodes started.
func marginTable(lines []line.CombinedStatus) ui.DataTable {
	t := ui.DataTable{Caption: "Charges and provider cost since the nodes started", Columns: []ui.Column{{Title: "Line"}, {Title: "Model"},
		{Title: "Answered", Right: true, Fold: true}, {Title: "Charged", Right: true}, {Title: "Provider cost", Right: true},
		{Title: "Margin", Right: true}}}
	var charged money.Amount
	for _, l := range lines {
		for _, m := range l.Margins {
			charged += m.Charged
			t.Rows = append(t.Rows, ui.DataRow{Cells: []any{l.Line, m.Model, ui.Count{N: m.Settled}, ui.Money{Amount: m.Charged},
				knownAmount(m.LineCost), knownAmount(m.Margin)}})
		}
	}
	if len(t.Rows) > 0 {
		t.Foot = []any{ui.Words("All"), "", "", ui.Money{Amount: charged}, "", ""}
	}
	return t
}

// knownAmount returns an amount, or a dash if the amount is unknown.
func knownAmount(a *money.Amount) any {
	if a == nil {
		return ui.Text{Text: "–", Muted: true}
	}
	return ui.Money{Amount: *a}
}
