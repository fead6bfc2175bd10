package mails

import (
	"testing"

	"tollgate/internal/gatewaytest/fakemail"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestLowBalanceSurvivesKills checks that a low balance has one mail, whenever the process is killed. A
// process compares the balances at its start.
func TestLowBalanceSurvivesKills(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		server := fakemail.Start(t, fakemail.Options{StartTLS: true, Auth: true})
		n := scene.NewNode(t, binary, database, settings(server))
		account, _ := n.Account(10, nil)
		n.Admin("POST", "/accounts/"+account+"/users", map[string]any{"email": "ann@example.com", "password": "a good password"}, nil)
		db := scene.OpenDatabase(t, database)
		armed := func() bool {
			var count int
			if err := db.QueryRow(`SELECT COUNT(*) FROM ledger_armed WHERE account = $1`, account).Scan(&count); err != nil {
				t.Fatal(err)
			}
			return count == 1
		}
		restart := func() { n.Kill(); n.Restart() }
		restart()
		scene.Eventually(t, "the level is armed", armed)
		n.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": -9}, nil)
		restart()
		scene.Eventually(t, "the warning is sent", func() bool { return sent(n, 1) })
		restart()
		restart()
		mails := map[string]bool{} // by Message-ID, because a kill may repeat a mail
		for _, m := range server.Mails() {
			mails[m.Header.Get("Message-Id")] = true
			if m.To != "ann@example.com" || m.Subject != "Your balance at Shop is low" {
				t.Errorf("got the mail %q to %s, want the warning to ann@example.com", m.Subject, m.To)
			}
		}
		if len(mails) != 1 || len(outbox(n)) != 1 {
			t.Errorf("%d mails arrived and %d were written, want 1", len(mails), len(outbox(n)))
		}
	})
}
