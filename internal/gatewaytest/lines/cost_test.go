package lines

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestCosts checks the line cost in the request log, the jobs, the metrics and the list of lines,
// together with the charges and the amounts above the holds. The cost is from the provider's usage or
// from the catalog. It changes no charge.
func TestCosts(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := scene.NewNode(t, binary, database, nil)
		const (
			usage  = `{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500%s}`
			native = `{"input_tokens":1000,"output_tokens":500%s}`
		)
		cost := map[string]any{"cost": map[string]any{"input": 0.5, "output": 1}}
		type costCase struct {
			form     scene.Form
			line     map[string]any
			streamed bool
			reply    fakeprovider.Reply
			want     money.Amount // -1 if the line cost is unknown
		}
		whole := func(body string) fakeprovider.Reply {
			return fakeprovider.Reply{Body: body}
		}
		cases := []costCase{
			{scene.Chat, nil, false, whole(fakeprovider.ChatBill(fmt.Sprintf(usage, ""))), -1},
			{scene.Chat, cost, false, whole(fakeprovider.ChatBill(fmt.Sprintf(usage, ""))), money.USD / 1000},
			{scene.Chat, cost, false, whole(fakeprovider.ChatBill(fmt.Sprintf(usage, `,"cost":0.00123,"is_byok":false`))), 1_230_000},
			{scene.Chat, nil, true, fakeprovider.Reply{ContentType: "text/event-stream",
				Raw: fakeprovider.ChatBillStream(fmt.Sprintf(usage, `,"cost_in_usd_ticks":45000000`))}, 4_500_000},
			{scene.Responses, nil, false, whole(fakeprovider.ResponsesObject("completed",
				fmt.Sprintf(native, `,"cost":{"currency":"USD","total_cost":0.007}`), fakeprovider.ResponsesMessage("hi"))), 7_000_000},
			{scene.Messages, nil, false, whole(fakeprovider.NativeBill(fmt.Sprintf(native, `,"cost":0.25`))), money.USD / 4},
		}
		var models, lines []map[string]any
		for i, a := range cases {
			id := fmt.Sprintf("cost-%d", i)
			models = append(models, scene.FormModel(id, nil, a.form))
			lines = append(lines, scene.FormLine(id, string(a.form), fakeprovider.New(t, a.reply, a.reply).URL(), a.line, id))
		}
		fal := fakestudio.ProviderOf(t, "fal")
		models = append(models, scene.ImageModel("cost-image", nil))
		lines = append(lines, fal.JobLine("cost-image", fal.Open(t), "image", map[string]any{"cost": map[string]any{"cost-image": 0.0125}},
			"cost-image"))
		p.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)

		g := scene.GatewayAt(t, p.Process)
		account, key := p.Account(10, nil)
		first := `tollgate_line_cost_usd_total{line="cost-image",model="cost-image"} 0`
		scene.Eventually(t, "the metrics have a zero series for each cost in the catalog", func() bool {
			return strings.Contains(metrics(t, p), first+"\n")
		})
		for i, a := range cases {
			answer := g.Send(t, a.form, key, scene.Request(a.form, fmt.Sprintf("cost-%d", i), a.streamed, nil))
			r, got := g.Receipt(t, account, answer.ID), money.Amount(-1)
			if r.LineCost != nil {
				got = *r.LineCost
			}
			if answer.Status != 200 || got != a.want || r.Cost != scene.AnswerCost {
				t.Errorf("%d: %d %s, line's cost %s, want %s; charged %s", i, answer.Status, answer.Raw, got, a.want, r.Cost)
			}
		}
		// If the usage exceeds the hold, the charge is the hold.
		answer := g.Send(t, scene.Chat, key, scene.Request(scene.Chat, "cost-1", false, map[string]any{"max_tokens": 10}))
		held := g.Receipt(t, account, answer.ID)
		if answer.Status != 200 || held.Over == 0 || held.Cost+held.Over != scene.AnswerCost {
			t.Errorf("%d %s: charged %s, %s above the hold", answer.Status, answer.Raw, held.Cost, held.Over)
		}
		c := p.Customer()
		job := c.Submit(t, "image", scene.JobRequest("cost-image", "a boat", map[string]any{"n": 2}))
		c.Becomes(t, "image", job, "succeeded")
		var jobCost struct {
			LineCost money.Amount `json:"line_cost_usd"`
		}
		p.Admin("GET", "/jobs/"+job, nil, &jobCost)
		if jobCost.LineCost != money.USD/40 {
			t.Errorf("the job's line cost is %s", jobCost.LineCost)
		}
		metricSum := func(amounts ...money.Amount) string {
			sum := 0.0
			for _, a := range amounts {
				sum += float64(a) / float64(money.USD)
			}
			return strconv.FormatFloat(sum, 'g', -1, 64)
		}
		for _, series := range []string{`tollgate_line_cost_usd_total{line="cost-1",model="cost-1"} 0.002`,
			`tollgate_line_charged_usd_total{line="cost-1",model="cost-1"} ` + metricSum(scene.AnswerCost, held.Cost),
			`tollgate_line_over_hold_usd_total{line="cost-1",model="cost-1"} ` + metricSum(held.Over),
			`tollgate_line_cost_usd_total{line="cost-image",model="cost-image"} 0.025`,
			`tollgate_line_charged_usd_total{line="cost-image",model="cost-image"} ` + metricSum(2*scene.PricePicture)} {
			// The metrics count a job shortly after its end.
			scene.Eventually(t, series+" is in the metrics", func() bool { return strings.Contains(metrics(t, p), series+"\n") })
		}
		margin := func(settled int64, charged, over, cost money.Amount, overs int64) []line.Margin {
			m := line.Margin{Settled: settled, Charged: charged, OverHolds: overs, Over: over}
			if cost >= 0 {
				rest := charged - cost
				m.LineCost, m.Margin = &cost, &rest
			}
			return []line.Margin{m}
		}
		want := map[string][]line.Margin{
			"cost-0":     margin(1, scene.AnswerCost, 0, -1, 0),
			"cost-1":     margin(2, scene.AnswerCost+held.Cost, held.Over, money.USD/500, 1),
			"cost-4":     margin(1, scene.AnswerCost, 0, 7_000_000, 0),
			"cost-image": margin(1, 2*scene.PricePicture, 0, money.USD/40, 0),
		}
		for _, query := range []string{"", "?node=all"} {
			var all struct{ Data []line.Status }
			p.Admin("GET", "/lines"+query, nil, &all)
			for _, l := range all.Data {
				if margins, ok := want[l.Line]; ok {
					margins[0].Model = l.Line
					if !reflect.DeepEqual(l.Margins, margins) {
						t.Errorf("%q: %s has %+v, want %+v", query, l.Line, l.Margins, margins)
					}
				}
			}
		}
		g.Audit(t)
	})
}

// metrics returns the metrics of a node.
func metrics(t *testing.T, p *scene.Node) string {
	t.Helper()
	res, err := scene.Do(t.Context(), p.Client, "GET", p.URL+"/metrics", "", "Authorization", "Bearer "+scene.AdminToken)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
