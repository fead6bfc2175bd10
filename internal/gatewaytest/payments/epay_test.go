package payments

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
	"tollgate/internal/topup/epay"
)

var sitePage = regexp.MustCompile(`href="(http[^"]+/submit\.php[^"]+)"`)

// TestKillBetweenStepsAtEPay orders a top-up at an EPay site and pays it. In each round the process is
// killed at another question to the site, before its answer. The last rounds are without a kill. Each
// round ends with one credit.
func TestKillBetweenStepsAtEPay(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := fakepayment.NewEPay(t)
		n := scene.NewNode(t, scene.Binary(t), database, map[string]string{"epay_url": s.URL, "epay_pid": fakepayment.EPayPID,
			"epay_key": fakepayment.EPayKey, "topup_currency": "cny", "topup_rate": "0.1", "private_networks": "127.0.0.0/8", "node_lease": "1s"})
		c := newCustomer(t, n)
		var calls, killAt atomic.Int64
		s.OnCall(func(string) {
			if calls.Add(1) == killAt.Load() {
				n.Kill()
			}
		})
		want := money.Amount(0)
		for round, killed := int64(1), true; killed; round++ {
			calls.Store(0)
			killAt.Store(round)
			page := c.post("/console/billing/top-ups/new", url.Values{"amount": {"50.00"},
				"provider": {"epay/alipay"}, "other": {""}, "once": {c.newOnce()}})
			address := sitePage.FindStringSubmatch(c.get(page))
			if address == nil {
				t.Fatalf("round %d: the page of the top-up has no address of the site", round)
			}
			s.Visit(html.UnescapeString(address[1]))
			s.SendTo("")
			s.Pay(topupID.FindString(page))
			sent := s.Messages()
			message, acknowledged := sent[len(sent)-1], false
			for range 5 {
				s.SendTo(c.n.URL + epay.Path)
				if acknowledged = s.Send(message); acknowledged {
					break
				}
				c.revive(errUnanswered)
			}
			if !acknowledged {
				t.Errorf("round %d: the message is not acknowledged", round)
			}
			want += 5 * money.USD
			if got := n.FundsOf(c.id).Balance; got != want {
				t.Errorf("round %d: balance: got %s, want %s", round, got, want)
			}
			if body := c.get(page); !strings.Contains(body, "Receipt") {
				t.Fatalf("round %d: the page of the top-up is no receipt:\n%s", round, body)
			}
			n.Audit(t)
			killed = calls.Load() >= round && round < 8
		}
		n.CheckStop(t)
		scene.CheckBooks(t, n.Binary, n.Settings)
	})
}
