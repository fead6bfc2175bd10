package operator

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// priced returns a catalog of chat models, `ID=PRICE`.
func priced(t *testing.T, prices ...string) *catalog.Document {
	t.Helper()
	var text strings.Builder
	text.WriteString("models:\n")
	for _, p := range prices {
		id, price, _ := strings.Cut(p, "=")
		fmt.Fprintf(&text, "  - {id: %s, kind: chat, forms: [chat], context_window: 1000, max_output_tokens: 100, "+
			"price: {input: %s, output: 1}}\n", id, price)
	}
	doc, _, err := catalog.Parse([]byte(text.String()+"lines: []\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// agenda is a catalog with scheduled changes on two nodes.
type agenda struct {
	t     *testing.T
	db    *store.DB
	nodes [2]*Scheduler
	clock *storetest.Clock

	alerts chan alert.Alert
}

func newAgenda(t *testing.T, db *store.DB, clock *storetest.Clock, prices ...string) agenda {
	mails, err := mail.New(mail.Options{DB: db, Server: mail.SMTPServer{Host: "smtp.example.com"}, PublicURL: "https://shop.example"})
	if err != nil {
		t.Fatal(err)
	}
	a := agenda{t: t, db: db, clock: clock, alerts: make(chan alert.Alert, 10)}
	for i := range a.nodes {
		a.nodes[i] = NewScheduler(SchedulerOptions{DB: db, Mails: mails, Readers: []string{"ops@shop.example"},
			Alert: func(l alert.Alert) { a.alerts <- l }})
	}
	a.apply(prices...)
	return a
}

func (a agenda) apply(prices ...string) {
	a.t.Helper()
	storetest.Update(a.t, a.db, func(tx *store.Tx) error {
		_, err := ApplyTx(tx, Actor{Way: Shell}, priced(a.t, prices...))
		return err
	})
}

// schedule schedules a catalog for an hour from now.
func (a agenda) schedule(base int64, prices ...string) (c catalog.ScheduledChange, err error) {
	a.t.Helper()
	err = a.db.Update(a.t.Context(), func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		c, err = ScheduleTx(tx, Actor{Way: Console, Name: "ann@shop.example"}, priced(a.t, prices...), base,
			catalog.Schedule{AtMS: now + time.Hour.Milliseconds(), Note: "new prices"})
		return err
	})
	return c, err
}

// step lets both nodes apply changes at the same time.
func (a agenda) step() {
	a.t.Helper()
	var wg sync.WaitGroup
	for _, n := range a.nodes {
		wg.Go(func() {
			if err := n.ApplyDue(context.WithoutCancel(a.t.Context())); err != nil {
				a.t.Error(err)
			}
		})
	}
	wg.Wait()
}

// check compares the current catalog and the state of a change.
func (a agenda) check(id string, state catalog.ChangeState, revision int64, prices ...string) (c catalog.ScheduledChange) {
	a.t.Helper()
	storetest.View(a.t, a.db, func(tx *store.Tx) (err error) {
		if c, err = catalog.ScheduledChangeTx(tx, id); err != nil {
			return err
		}
		doc, current, err := catalog.CurrentTx(tx)
		if want := priced(a.t, prices...); err != nil || c.State != state || current != revision || !catalog.Equal(doc, want) {
			a.t.Errorf("change %s (%s), revision %d, error %v:\n%s\nwant %s, revision %d:\n%s", c.State, c.Reason, current, err, doc.YAML(), state,
				revision, want.YAML())
		}
		return nil
	})
	return c
}

// eachAgenda runs a test on both databases.
func eachAgenda(t *testing.T, test func(a agenda)) {
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		test(newAgenda(t, db, clock, "a=1", "b=1"))
	})
}

// TestScheduledChange checks that a change is applied once, at its time, by one of two nodes, and keeps
// what another apply has changed.
func TestScheduledChange(t *testing.T) {
	t.Parallel()
	eachAgenda(t, func(a agenda) {
		c, err := a.schedule(1, "a=2", "b=1")
		if err != nil {
			a.t.Fatal(err)
		}
		a.apply("a=1", "b=3")
		a.step()
		a.check(c.ID, catalog.ChangePending, 2, "a=1", "b=3")
		a.clock.Advance(time.Hour)
		a.step()
		a.step()
		if c := a.check(c.ID, catalog.ChangeApplied, 3, "a=2", "b=3"); c.Revision != 3 || c.EndedMS < c.AtMS {
			a.t.Errorf("the change has revision %d and ended %d ms after its time", c.Revision, c.EndedMS-c.AtMS)
		}
		storetest.View(a.t, a.db, func(tx *store.Tx) error {
			by, err := LastActorsTx(tx, CatalogApply, []string{"3"})
			if by["3"].Name != "ann@shop.example" {
				a.t.Errorf("revision 3 was applied by %q, want the operator who scheduled it", by["3"].Name)
			}
			return err
		})
	})
}

// TestScheduledChangeDoesNotFit checks that a change whose model has changed since is not applied, that
// one alert is mailed and one is sent, and that operators see the failure until they change the catalog.
func TestScheduledChangeDoesNotFit(t *testing.T) {
	t.Parallel()
	eachAgenda(t, func(a agenda) {
		c, err := a.schedule(1, "a=2", "b=1")
		if err != nil {
			a.t.Fatal(err)
		}
		a.apply("a=5", "b=1")
		a.clock.Advance(time.Hour)
		a.step()
		a.step()
		if c := a.check(c.ID, catalog.ChangeFailed, 2, "a=5", "b=1"); !strings.Contains(c.Reason, "model a was changed") {
			a.t.Errorf("reason %q, want the model", c.Reason)
		}
		storetest.View(a.t, a.db, func(tx *store.Tx) error {
			mails, _, err := mail.ListTx(tx, mail.OutboxFilter{Limit: 10})
			if len(mails) != 1 || mails[0].Kind != mail.ChangeFailed {
				a.t.Errorf("got the mails %+v, want one alert", mails)
			}
			return err
		})
		if l := <-a.alerts; l.Change != c.ID || l.State != alert.ChangeFailed || !l.Mailed || len(a.alerts) > 0 {
			a.t.Errorf("got the alert %+v and %d more, want one about the change", l, len(a.alerts))
		}
		failed := func() (n int) {
			storetest.View(a.t, a.db, func(tx *store.Tx) error {
				all, err := catalog.FailedChangesTx(tx)
				n = len(all)
				return err
			})
			return n
		}
		a.clock.Advance(time.Minute)
		if n := failed(); n != 1 {
			a.t.Errorf("%d failed changes, want 1", n)
		}
		a.apply("a=6", "b=1")
		if n := failed(); n != 0 {
			a.t.Errorf("%d failed changes after an apply, want 0", n)
		}
	})
}

// TestRefusedSchedules checks the refused schedules and cancellations.
func TestRefusedSchedules(t *testing.T) {
	t.Parallel()
	eachAgenda(t, func(a agenda) {
		refused := func(err error, words string) {
			a.t.Helper()
			var f *fault.Error
			if !errors.As(err, &f) || !strings.Contains(f.Error(), words) {
				a.t.Errorf("error %v, want a refusal with %q", err, words)
			}
		}
		if _, err := a.schedule(7, "a=2", "b=1"); !errors.Is(err, ErrApplied) {
			a.t.Errorf("error %v on another revision, want %v", err, ErrApplied)
		}
		_, err := a.schedule(0, "a=1", "b=1")
		refused(err, "nothing to schedule")
		c, err := a.schedule(0, "a=2", "b=1")
		if err != nil {
			a.t.Fatal(err)
		}
		_, err = a.schedule(0, "a=3", "b=1")
		refused(err, "changes model a too")
		cancel := func() error {
			return a.db.Update(a.t.Context(), func(tx *store.Tx) error {
				_, err := CancelChangeTx(tx, Actor{Way: Token}, c.ID)
				return err
			})
		}
		if err := cancel(); err != nil {
			a.t.Fatal(err)
		}
		refused(cancel(), "is cancelled")
		a.clock.Advance(time.Hour)
		a.step()
		a.check(c.ID, catalog.ChangeCancelled, 1, "a=1", "b=1")
		err = a.db.Update(a.t.Context(), func(tx *store.Tx) error {
			_, err := catalog.ScheduleTx(tx, priced(a.t, "a=4", "b=1"), catalog.Schedule{AtMS: 1})
			return err
		})
		refused(err, "in the future")
		storetest.View(a.t, a.db, func(tx *store.Tx) error {
			all, more, err := catalog.ScheduledChangesTx(tx, "", 10)
			if len(all) != 1 || more || !slices.Equal(all[0].Changes, []string{"model a: price.input 1 -> 2"}) || all[0].Note != "new prices" {
				a.t.Errorf("the list has %+v, want the cancelled change", all)
			}
			return err
		})
	})
}

// TestSecretOfAScheduledChange checks that a secret cannot be deleted while a pending change brings a line
// with it.
func TestSecretOfAScheduledChange(t *testing.T) {
	t.Parallel()
	eachAgenda(t, func(a agenda) {
		keys, err := vault.ParseKeys(base64.StdEncoding.EncodeToString(make([]byte, vault.KeyBytes)))
		if err != nil {
			a.t.Fatal(err)
		}
		doc := priced(a.t, "a=1", "b=1")
		doc.Lines = []catalog.LineSpec{{ID: "main", Provider: "openai", BaseURL: "https://api.example.com/v1",
			APIKey: "${secret:coming}", Models: map[string]string{"a": "a"}, Weight: 1, Priority: 1}}
		var c catalog.ScheduledChange
		storetest.Update(a.t, a.db, func(tx *store.Tx) error {
			for _, name := range []string{"coming", "idle"} {
				if err := StoreSecretTx(tx, Actor{Way: Token}, keys, name, "sk-1"); err != nil {
					return err
				}
			}
			now, err := tx.NowMS()
			if err == nil {
				c, err = ScheduleTx(tx, Actor{Way: Token}, doc, 0, catalog.Schedule{AtMS: now + time.Hour.Milliseconds()})
			}
			return err
		})
		var list []LineSecret
		storetest.Update(a.t, a.db, func(tx *store.Tx) (err error) {
			list, err = SecretsTx(tx, keys)
			return err
		})
		for _, s := range list {
			if want := map[string]string{"coming": c.ID}[s.Name]; s.Scheduled != want {
				a.t.Errorf("the secret %s is used by the change %q, want %q", s.Name, s.Scheduled, want)
			}
		}
		remove := func(name string) error {
			return a.db.Update(a.t.Context(), func(tx *store.Tx) error { return DeleteSecretTx(tx, Actor{Way: Token}, name) })
		}
		var f *fault.Error
		if err := remove("coming"); !errors.As(err, &f) || !strings.Contains(f.Error(), c.ID) || !strings.Contains(f.Error(), "line main") {
			a.t.Errorf("deleting the secret of a pending change: error %v, want one with %s and its line", err, c.ID)
		}
		if err := remove("idle"); err != nil {
			a.t.Errorf("deleting another secret: error %v, want none", err)
		}
		storetest.Update(a.t, a.db, func(tx *store.Tx) error {
			_, err := CancelChangeTx(tx, Actor{Way: Token}, c.ID)
			return err
		})
		if err := remove("coming"); err != nil {
			a.t.Errorf("deleting the secret of a cancelled change: error %v, want none", err)
		}
	})
}

// announce creates 120 accounts, of which every second one has used model a, and announces a price of a.
func (a agenda) announce() (c catalog.ScheduledChange) {
	a.t.Helper()
	storetest.Update(a.t, a.db, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		for i := range 120 {
			used, err := account.CreateTx(tx, account.NewAccount{Name: "n"})
			if err != nil {
				return err
			}
			signIn := account.SignIn{Email: fmt.Sprintf("u%d@example.com", i), PasswordHash: "$x"}
			if _, err := account.CreateUserTx(tx, used.ID, signIn); err != nil {
				return err
			}
			model := []string{"a", "b"}[i%2]
			if _, err := tx.Exec(`INSERT INTO ledger_series (id, account, key, model, line, endpoint, folded)
					VALUES ($1, $2, '', $3, '', '', 0)`, i+1, used.ID, model); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO ledger_day (day, series, requests, billed, failed, prompt_tokens, cached_tokens,
					completion_tokens, quantity, cost_nano, line_cost_nano, line_costs, known_cost_nano, unit)
					VALUES ($1, $2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, '')`, now/(24*time.Hour).Milliseconds(), i+1); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(`UPDATE account SET price_factor = 500000`); err != nil {
			return err
		}
		c, err = ScheduleTx(tx, Actor{Way: Console}, priced(a.t, "a=2", "b=1"), 0,
			catalog.Schedule{AtMS: now + time.Hour.Milliseconds(), Announced: true})
		return err
	})
	return c
}

// together runs a step twice on each node at the same time.
func (a agenda) together(step func(s *Scheduler, ctx context.Context) error) {
	a.t.Helper()
	var wg sync.WaitGroup
	for range 2 {
		for _, n := range a.nodes {
			wg.Go(func() {
				if err := step(n, context.WithoutCancel(a.t.Context())); err != nil {
					a.t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}

// wantMails checks that as many users as mails have one mail of a kind each, and all have used model a.
func (a agenda) wantMails(kind mail.LetterKind, want int) {
	a.t.Helper()
	storetest.View(a.t, a.db, func(tx *store.Tx) error {
		all, _, err := mail.ListTx(tx, mail.OutboxFilter{Limit: 500})
		readers, mails := map[string]bool{}, 0
		for _, m := range all {
			if m.Kind == kind {
				mails++
				readers[m.To] = true
			}
		}
		if mails != want || len(readers) != want || readers["u1@example.com"] {
			a.t.Errorf("%d mails %s to %d readers, want one to each of %d", mails, kind, len(readers), want)
		}
		return err
	})
}

func (a agenda) cancel(id string) {
	a.t.Helper()
	storetest.Update(a.t, a.db, func(tx *store.Tx) error {
		_, err := CancelChangeTx(tx, Actor{Way: Token}, id)
		return err
	})
}

// TestMailPrices checks that the users of accounts that used a model get one mail about its announced
// price, with two nodes, and one about its withdrawal.
func TestMailPrices(t *testing.T) {
	t.Parallel()
	eachAgenda(t, func(a agenda) {
		c := a.announce()
		a.together((*Scheduler).MailPrices)
		a.wantMails(mail.PriceChange, 60)
		var text string
		storetest.View(a.t, a.db, func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT body_text FROM mail_outbox WHERE recipient = 'u0@example.com'`).Scan(&text)
		})
		if want := "a, US dollars per million tokens\nInput: $0.50 → $1.00\n"; !strings.Contains(text, want) {
			a.t.Errorf("the mail is\n%s\nwant %q in it, with the account's factor", text, want)
		}
		a.together((*Scheduler).MailWithdrawals)
		a.wantMails(mail.PriceWithdrawn, 0)
		a.cancel(c.ID)
		a.together((*Scheduler).MailWithdrawals)
		a.together((*Scheduler).MailWithdrawals)
		a.wantMails(mail.PriceWithdrawn, 60)
	})
}

// TestWithdrawHalfMailedPrices checks that only users with a mail about a change get one about its
// withdrawal, if the change is cancelled while its mails are written.
func TestWithdrawHalfMailedPrices(t *testing.T) {
	t.Parallel()
	eachAgenda(t, func(a agenda) {
		c := a.announce()
		news, err := store.Read(a.t.Context(), a.db, priceNewsTx)
		if err != nil {
			a.t.Fatal(err)
		}
		storetest.Update(a.t, a.db, func(tx *store.Tx) error { return a.nodes[0].mailTx(tx, news) })
		a.cancel(c.ID)
		a.together((*Scheduler).MailPrices)
		a.together((*Scheduler).MailWithdrawals)
		a.wantMails(mail.PriceChange, mailedAccounts)
		a.wantMails(mail.PriceWithdrawn, mailedAccounts)
	})
}
