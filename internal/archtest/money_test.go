package archtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/kind/rerank"
)

// moneyDocument explains the rules of billing with examples. Package chat computes its table of
// streams.
const moneyDocument = "docs/money.md"

// moneyModels are the models of the document's examples.
func moneyModels(t *testing.T, document string) map[string]*catalog.Model {
	t.Helper()
	_, rest, _ := strings.Cut(document, "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	doc, _, err := catalog.Parse([]byte(text+"lines: []\n"), app.Providers())
	if err != nil || !found {
		t.Fatalf("%s: the models of the examples: %v", moneyDocument, err)
	}
	models := map[string]*catalog.Model{}
	for i := range doc.Models {
		models["`"+doc.Models[i].ID+"`"] = &doc.Models[i]
	}
	return models
}

// examples calls example with each row of a table and the model of its first cell. The table must
// have at least minRows rows.
func examples(t *testing.T, minRows int, example func(row string, m *catalog.Model, cells []string), header ...string) {
	t.Helper()
	document := read(t, moneyDocument)
	models := moneyModels(t, document)
	rows := tableRows(document, header...)
	if len(rows) < minRows {
		t.Fatalf("%s: %d rows below %v, want at least %d", moneyDocument, len(rows), header, minRows)
	}
	for i, cells := range rows {
		m := models[cells[0]]
		if m == nil {
			t.Errorf("%s: no model %s", moneyDocument, cells[0])
			continue
		}
		example(fmt.Sprintf("%s, row %d of %s", moneyDocument, i+1, strings.Join(cells, " | ")), m, cells)
	}
}

// number reads a cell.
func number(t *testing.T, row, cell string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(cell, 10, 64)
	if err != nil {
		t.Errorf("%s: %v", row, err)
	}
	return n
}

// words splits a cell at its commas.
func words(cell string) []string {
	var all []string
	for word := range strings.SplitSeq(cell, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

// tier is the choice of a service tier.
func tier(name string) wire.PricedField { return wire.PricedField{Param: "service_tier", Name: name} }

// boundOf reads the bytes of a prompt. A file makes the prompt unbounded.
func boundOf(t *testing.T, row, cell string) wire.PromptBound {
	t.Helper()
	if cell == "file" {
		return wire.PromptBound{Unbounded: true}
	}
	return wire.PromptBound{TextBytes: number(t, row, cell)}
}

// TestMoneyDocumentHolds recomputes the documented holds.
func TestMoneyDocumentHolds(t *testing.T) {
	t.Parallel()
	examples(t, 8, func(row string, m *catalog.Model, cells []string) {
		bound := boundOf(t, row, cells[1])
		bound.Images = number(t, row, cells[2])
		limit := int64(0)
		if cells[3] != "none" {
			limit = number(t, row, cells[3])
		}
		var choice catalog.Pricing
		for _, word := range words(cells[5]) {
			most, isMost := strings.CutPrefix(word, "at most ")
			switch {
			case isMost:
				choice.Tools[len(choice.Tools)-1].MaxCalls = number(t, row, most)
			case m.Price.Tools[word] > 0:
				choice.Tools = append(choice.Tools, wire.PricedField{Param: "tools[0].type", Name: word})
			default:
				choice.Options = append(choice.Options, tier(word))
			}
		}
		if err := m.CheckPriced(choice); err != nil {
			t.Errorf("%s: %v", row, err)
		}
		if held := m.HighestCost(bound, limit, number(t, row, cells[4]), choice); held.String() != cells[6] {
			t.Errorf("%s: got a hold of %s, want %s", row, held, cells[6])
		}
	}, "model", "body, bytes", "images", "limit", "n", "with", "held, USD", "because")
}

// TestMoneyDocumentCharges recomputes the documented charges.
func TestMoneyDocumentCharges(t *testing.T) {
	t.Parallel()
	examples(t, 8, func(row string, m *catalog.Model, cells []string) {
		u := wire.Usage{Prompt: number(t, row, cells[1]), Cached: number(t, row, cells[2]), CacheWrite: number(t, row, cells[3]),
			CacheWrite1h: number(t, row, cells[4]), Completion: number(t, row, cells[5])}
		var choice catalog.Pricing
		for _, word := range words(cells[6]) {
			what, value, _ := strings.Cut(word, " ")
			switch what {
			case "asked":
				choice.Options = append(choice.Options, tier(value))
			case "answered":
				u.ServiceTier = value
			default:
				u.ToolCalls = map[string]int64{what: number(t, row, value)}
			}
		}
		if cost := m.Cost(u, choice); cost.String() != cells[7] {
			t.Errorf("%s: got a charge of %s, want %s", row, cost, cells[7])
		}
	}, "model", "prompt", "cached", "written", "written for 1 h", "completion", "with", "charged, USD", "because")
}

// planOf returns the plan of a cell for an image or video model.
func planOf(t *testing.T, row string, m *catalog.Model, cell string) (catalog.Plan, error) {
	t.Helper()
	var image catalog.ImageRequest
	var video catalog.VideoRequest
	for _, word := range words(cell) {
		if n, ok := strings.CutPrefix(word, "n "); ok {
			image.N = number(t, row, n)
		} else if seconds, ok := strings.CutSuffix(word, " s"); ok {
			video.Duration = seconds
		} else {
			image.Size, video.Resolution = word, word
		}
	}
	if m.Kind == catalog.KindVideo {
		return m.PlanVideo(video)
	}
	return m.PlanImage(image)
}

// checkJob recomputes the documented hold and charge of a job.
func checkJob(t *testing.T, row string, m *catalog.Model, factor money.Factor, request, results, held, charged string) {
	t.Helper()
	plan, err := planOf(t, row, m, request)
	if err != nil {
		t.Errorf("%s: %v", row, err)
		return
	}
	plan.Factor = factor
	if h, c := m.PlanHold(plan), m.PlanCost(plan, number(t, row, results)); h.String() != held || c.String() != charged {
		t.Errorf("%s: got a hold of %s and a charge of %s, want %s and %s", row, h, c, held, charged)
	}
}

// TestMoneyDocumentJobs recomputes the documented holds and charges of jobs.
func TestMoneyDocumentJobs(t *testing.T) {
	t.Parallel()
	examples(t, 8, func(row string, m *catalog.Model, cells []string) {
		checkJob(t, row, m, 0, cells[1], cells[2], cells[3], cells[4])
	}, "model", "asked for", "came", "held, USD", "charged, USD", "because")
	examples(t, 6, func(row string, m *catalog.Model, cells []string) {
		checkJob(t, row, m, factorOf(t, row, cells[1]), cells[2], cells[3], cells[4], cells[5])
	}, "model", "factor", "asked for", "came", "held, USD", "charged, USD", "because")
}

// factorOf reads a factor from a cell.
func factorOf(t *testing.T, row, cell string) money.Factor {
	t.Helper()
	factor, err := money.ParseFactor(cell)
	if err != nil {
		t.Errorf("%s: %v", row, err)
	}
	return account.Prices{Factor: factor}.FactorOf("any")
}

// TestMoneyDocumentFactors recomputes the documented holds and charges of accounts with factors.
func TestMoneyDocumentFactors(t *testing.T) {
	t.Parallel()
	examples(t, 8, func(row string, m *catalog.Model, cells []string) {
		choice := catalog.Pricing{Factor: factorOf(t, row, cells[1])}
		bound := boundOf(t, row, cells[2])
		u := wire.Usage{Prompt: number(t, row, cells[4]), Completion: number(t, row, cells[5])}
		for _, word := range words(cells[3]) {
			what, calls, isTool := strings.Cut(word, " ")
			if !isTool {
				choice.Options = append(choice.Options, tier(what))
				continue
			}
			choice.Tools = append(choice.Tools, wire.PricedField{Param: "tools[0].type", Name: what})
			u.ToolCalls = map[string]int64{what: number(t, row, calls)}
		}
		held, charged := m.HighestCost(bound, 500, 1, choice), m.Cost(u, choice)
		if held.String() != cells[6] || charged.String() != cells[7] {
			t.Errorf("%s: got a hold of %s and a charge of %s, want %s and %s", row, held, charged, cells[6], cells[7])
		}
	}, "model", "factor", "body, bytes", "with", "prompt", "completion", "held, USD", "charged, USD", "because")
}

// TestMoneyDocumentSteps executes the document's steps of an account on a ledger.
func TestMoneyDocumentSteps(t *testing.T) {
	t.Parallel()
	rows := tableRows(read(t, moneyDocument), "step", "answer", "balance, USD", "held, USD", "spent by the key, USD", "because")
	if len(rows) < 8 {
		t.Fatalf("%s: found %d steps, want at least 8", moneyDocument, len(rows))
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		a := newStepAccount(t, db, 800_000_000)
		for _, cells := range rows {
			answer := a.step(strings.Fields(cells[0]))
			balance, held, spent := a.state()
			if answer != cells[1] || balance.String() != cells[2] || held.String() != cells[3] || spent.String() != cells[4] {
				t.Errorf("%s, %q: answered %q, balance %s, held %s, spent %s; want %v",
					moneyDocument, cells[0], answer, balance, held, spent, cells[1:5])
			}
		}
	})
}

// stepAccount is the account of TestMoneyDocumentSteps on a ledger, with a key and open holds by name.
type stepAccount struct {
	t     *testing.T
	db    *store.DB
	books *ledger.Ledger
	holds map[string]*ledger.Hold
}

// newStepAccount opens the account. Its key has a daily budget.
func newStepAccount(t *testing.T, db *store.DB, budget money.Amount) *stepAccount {
	t.Helper()
	self, err := node.Join(t.Context(), node.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	books := ledger.New(ledger.Options{DB: db, Node: self, QueueWait: 10 * time.Second})
	a := &stepAccount{t: t, db: db, books: books, holds: map[string]*ledger.Hold{}}
	if err := a.books.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := a.books.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	a.update(func(tx *store.Tx) error {
		if err := ledger.OpenAccountTx(tx, "acct", 0); err != nil {
			return err
		}
		return ledger.OpenKeyTx(tx, "key", "acct", ledger.KeyLimits{DailyBudget: &budget})
	})
	return a
}

func (a *stepAccount) update(do func(tx *store.Tx) error) {
	a.t.Helper()
	if err := a.db.Update(a.t.Context(), do); err != nil {
		a.t.Fatal(err)
	}
}

// step executes one step and returns the status of an admission, or "" for any other step.
func (a *stepAccount) step(words []string) string {
	a.t.Helper()
	amount := money.Amount(0)
	if last := words[len(words)-1]; words[0] != "fail" {
		var err error
		if amount, err = money.Parse(last); err != nil {
			a.t.Fatalf("%v: %v", words, err)
		}
	}
	name := words[1]
	switch words[0] {
	case "credit":
		a.update(func(tx *store.Tx) error {
			_, err := ledger.CreditTx(tx, "acct", amount, "")
			return err
		})
	case "floor":
		a.update(func(tx *store.Tx) error {
			return ledger.ChangeAccountTx(tx, "acct", ledger.AccountChange{Floor: &amount})
		})
	case "admit":
		hold, err := a.books.Admit(a.t.Context(), ledger.Admission{Request: id.New("req_"), Account: "acct", Key: "key", KeyVersion: 1,
			Model: "m", Endpoint: "/v1/chat/completions", Amount: amount, Received: time.Now()})
		var f *fault.Error
		switch {
		case err == nil:
			a.holds[name] = hold
			return "200"
		case errors.As(err, &f) && f.Code == fault.InsufficientQuota:
			return "402"
		}
		a.t.Fatal(err)
	case "settle":
		if err := a.holds[name].Settle(a.t.Context(), ledger.End{Outcome: ledger.Billed, Cost: amount, Status: 200}); err != nil {
			a.t.Fatal(err)
		}
	case "fail":
		_, before, _ := a.state()
		a.holds[name].Release(ledger.End{Outcome: ledger.Failed, Status: 502, Code: string(fault.UpstreamUnavailable)})
		for held := before; held == before; { // on a slow machine, Release may return before its commit
			if a.t.Context().Err() != nil {
				a.t.Fatalf("%s is held after the release, want less", held)
			}
			_, held, _ = a.state()
		}
	default:
		a.t.Fatalf("%s: unknown step %v", moneyDocument, words)
	}
	return ""
}

// state returns the account's balance and holds, and the key's charges.
func (a *stepAccount) state() (balance, held, spent money.Amount) {
	a.t.Helper()
	if err := a.db.View(a.t.Context(), func(tx *store.Tx) error {
		accounts, err := ledger.AccountsTx(tx, []string{"acct"})
		if err != nil {
			return err
		}
		keys, err := ledger.KeysTx(tx, []string{"key"})
		balance, held, spent = accounts["acct"].Balance, accounts["acct"].Held, keys["key"].SpentToday
		return err
	}); err != nil {
		a.t.Fatal(err)
	}
	return balance, held, spent
}

// TestMoneyDocumentEmbeddings recomputes the documented holds and charges of embeddings.
func TestMoneyDocumentEmbeddings(t *testing.T) {
	t.Parallel()
	examples(t, 6, func(row string, m *catalog.Model, cells []string) {
		texts, size := textsOf(t, row, cells[1])
		checkKind(t, row, m, map[string]any{"input": texts}, kind.Quantities{kind.Input: size}, kind.Input, cells[2:])
	}, "model", "inputs, bytes", "reported", "held, USD", "charged, USD", "because")
}

// TestMoneyDocumentReranking recomputes the documented holds and charges of reranking.
func TestMoneyDocumentReranking(t *testing.T) {
	t.Parallel()
	examples(t, 8, func(row string, m *catalog.Model, cells []string) {
		query := number(t, row, cells[1])
		count, size, _ := strings.Cut(cells[2], " × ")
		n, bytes := number(t, row, count), number(t, row, size)
		texts := make([]string, n)
		for i := range texts {
			texts[i] = strings.Repeat("x", int(bytes))
		}
		own := kind.Quantities{rerank.Searches: (n + 99) / 100, kind.Input: n * (query + bytes)}
		body := map[string]any{"query": strings.Repeat("x", int(query)), "documents": texts}
		checkKind(t, row, m, body, own, m.Measure().Units[0], cells[3:])
	}, "model", "query, bytes", "documents × bytes", "reported", "held, USD", "charged, USD", "because")
}

// TestMoneyDocumentModerations recomputes the documented holds and charges of moderations.
func TestMoneyDocumentModerations(t *testing.T) {
	t.Parallel()
	examples(t, 6, func(row string, m *catalog.Model, cells []string) {
		texts, size := textsOf(t, row, cells[1])
		var parts []any
		for _, text := range texts {
			parts = append(parts, map[string]any{"type": "text", "text": text})
		}
		images := number(t, row, cells[2])
		for range images {
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,AA"}})
		}
		own := kind.Quantities{kind.Requests: 1, kind.Input: size + 765*images}
		checkKind(t, row, m, map[string]any{"input": parts}, own, kind.Input, cells[3:])
	}, "model", "texts, bytes", "images", "reported", "held, USD", "charged, USD", "because")
}

// TestMoneyDocumentSpeech recomputes the documented holds and charges of speech with the product's counts of
// delivered sound.
func TestMoneyDocumentSpeech(t *testing.T) {
	t.Parallel()
	examples(t, 9, func(row string, m *catalog.Model, cells []string) {
		characters, delivered := number(t, row, cells[1]), number(t, row, cells[2])
		complete := cells[3] == "yes"
		request := openKind(t, m, map[string]any{"input": strings.Repeat("x", int(characters)), "voice": "v"}, nil)
		part := request.Parts(0)[0].(kind.StreamedPart)
		sound := io.Reader(strings.NewReader(strings.Repeat("x", int(delivered))))
		if !complete { // the last byte before the break is not delivered
			sound = io.MultiReader(sound, strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		stream := part.Stream(sound, "audio/mpeg", nil)
		var passed []byte
		var err error
		for err == nil {
			passed, err = stream.Next(passed)
		}
		if int64(len(passed)) != delivered || errors.Is(err, io.EOF) != complete {
			t.Fatalf("%s: got %d bytes and %v", row, len(passed), err)
		}
		checkCounts(t, row, m, part.Bound(), reportedOf(t, row, cells[4], kind.Input, kind.OutputAudio), func() kind.Quantities {
			own := stream.Count(&wire.Counter{}, complete)
			own[kind.Input] = characters
			return own
		}, cells[5:])
	}, "model", "text, characters", "delivered, bytes", "complete", "reported", "held, USD", "charged, USD", "because")
}

// TestMoneyDocumentTranscriptions recomputes the documented holds and charges of transcriptions.
func TestMoneyDocumentTranscriptions(t *testing.T) {
	t.Parallel()
	examples(t, 11, func(row string, m *catalog.Model, cells []string) {
		file := &kind.Upload{Size: number(t, row, cells[1])}
		if cells[2] != "unknown" {
			seconds, err := strconv.ParseFloat(cells[2], 64)
			if err != nil {
				t.Fatalf("%s: %v", row, err)
			}
			file.Duration = time.Duration(seconds * float64(time.Second))
		}
		part := openKind(t, m, map[string]any{}, file).Parts(0)[0]
		answer := `{"text":"x"`
		if cells[3] != "none" {
			answer += `,"segments":[{"end":` + cells[3] + `}]`
		}
		if first, second, isTokens := strings.Cut(cells[4], ", "); isTokens {
			answer += `,"usage":{"input_tokens":` + first + `,"output_tokens":` + second + `}`
		} else if first != "none" {
			answer += `,"usage":{"seconds":` + first + `}`
		}
		reported, err := part.Read([]byte(answer + "}"))
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		checkCounts(t, row, m, part.Bound(), reported, func() kind.Quantities { return part.Count(&wire.Counter{}) }, cells[5:])
	}, "model", "file, bytes", "duration, s", "last time, s", "reported", "held, USD", "charged, USD", "because")
}

// textsOf returns texts of the sizes in a cell, and the sum of the sizes.
func textsOf(t *testing.T, row, cell string) (texts []string, sum int64) {
	t.Helper()
	for _, size := range words(cell) {
		n := number(t, row, size)
		texts = append(texts, strings.Repeat("x", int(n)))
		sum += n
	}
	return texts, sum
}

// checkKind compares the hold and the charge of a request with the cells of a row: the provider's count in
// a unit or `none`, the hold and the charge. own are the gateway's counts.
func checkKind(t *testing.T, row string, m *catalog.Model, body map[string]any, own kind.Quantities, unit kind.PriceUnit, cells []string) {
	t.Helper()
	bound := openKind(t, m, body, nil).Parts(0)[0].Bound()
	checkCounts(t, row, m, bound, reportedOf(t, row, cells[0], unit), func() kind.Quantities { return own }, cells[1:])
}

// openKind returns a checked request for a model, with a file if it is not nil.
func openKind(t *testing.T, m *catalog.Model, body map[string]any, file *kind.Upload) kind.Request {
	t.Helper()
	body["model"] = m.ID
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := m.Kind.Definition().Open(raw)
	if err != nil {
		t.Fatal(err)
	}
	if file != nil {
		request.(kind.FileRequest).SetFile(file)
	}
	if err := request.Check(m); err != nil {
		t.Fatal(err)
	}
	return request
}

// reportedOf returns the provider's counts of a cell in units, or of `none`.
func reportedOf(t *testing.T, row, cell string, units ...kind.PriceUnit) kind.Quantities {
	t.Helper()
	reported := kind.Quantities{}
	if cell != "none" {
		for i, count := range words(cell) {
			reported[units[i]] = number(t, row, count)
		}
	}
	return reported
}

// checkCounts compares a hold and a charge with the cells of a row.
func checkCounts(t *testing.T, row string, m *catalog.Model, bound, reported kind.Quantities, own func() kind.Quantities, cells []string) {
	t.Helper()
	used, _, _ := kind.Believed(reported, bound, own)
	if held, charged := m.HighestUnitCost(bound, 0).String(), m.UnitCost(used, 0).String(); held != cells[0] || charged != cells[1] {
		t.Errorf("%s: got a hold of %s and a charge of %s, want %s and %s", row, held, charged, cells[0], cells[1])
	}
}
