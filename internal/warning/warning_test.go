package warning_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
	"tollgate/internal/warning"
)

// scene is a database with one account and one user.
type scene struct {
	*warning.Warnings
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	account account.Account
	user    account.User
}

func each(t *testing.T, test func(t *testing.T, s *scene)) {
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		s := &scene{t: t, db: db, clock: clock, Warnings: warnings(t, db, 5*money.USD)}
		storetest.Update(t, db, func(tx *store.Tx) (err error) {
			if s.account, err = account.CreateTx(tx, account.NewAccount{Name: "Acme"}); err != nil {
				return err
			}
			s.user, err = account.CreateUserTx(tx, s.account.ID, account.SignIn{Email: "ann@example.com", PasswordHash: "$argon2id$"})
			return err
		})
		test(t, s)
	})
}

// warnings returns the warnings of one node with a level.
func warnings(t *testing.T, db *store.DB, level money.Amount) *warning.Warnings {
	t.Helper()
	mails, err := mail.New(mail.Options{DB: db, Server: mail.SMTPServer{Host: "smtp.example.com"}, PublicURL: "https://shop.example"})
	if err != nil {
		t.Fatal(err)
	}
	return warning.New(warning.Options{DB: db, Mails: mails, PublicURL: "https://shop.example/", LowBalance: level})
}

func (s *scene) step() {
	s.t.Helper()
	if err := s.Step(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// move changes the balance and makes a step.
func (s *scene) move(usd money.Amount) {
	s.t.Helper()
	storetest.Update(s.t, s.db, func(tx *store.Tx) error {
		_, err := ledger.MoveTx(tx, s.account.ID, ledger.Payment{Amount: usd * money.USD, Note: "test"})
		return err
	})
	s.step()
}

// subjects returns the sorted subjects of all mails.
func (s *scene) subjects() (list []string) {
	s.t.Helper()
	storetest.View(s.t, s.db, func(tx *store.Tx) (err error) {
		list, err = store.Collect(tx, func(row store.Row) (text string, err error) {
			return text, row.Scan(&text)
		}, `SELECT subject FROM mail_outbox`)
		return err
	})
	slices.Sort(list)
	return list
}

func (s *scene) want(subjects ...string) {
	s.t.Helper()
	slices.Sort(subjects)
	if got := s.subjects(); !slices.Equal(got, subjects) {
		s.t.Fatalf("mails: got %q, want %q", got, subjects)
	}
}

func (s *scene) wantBody(words ...string) {
	s.t.Helper()
	var body string
	storetest.View(s.t, s.db, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT body_text FROM mail_outbox ORDER BY id DESC LIMIT 1`).Scan(&body)
	})
	for _, w := range words {
		if !strings.Contains(body, w) {
			s.t.Errorf("the mail does not have %q:\n%s", w, body)
		}
	}
}

const low = "Your balance at shop.example is low"

// TestLowBalance checks one mail for each drop below the level, and none for a new account or for a drop
// between two steps.
func TestLowBalance(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		s.step()
		s.move(4)
		s.want() // never above the level
		s.move(16)
		s.step()
		s.want()
		s.move(-16)
		s.step()
		s.move(-1)
		s.want(low)
		s.wantBody("$4.00", "$5.00", "https://shop.example/console/billing")
		s.move(2) // to the level
		s.move(-1)
		s.want(low, low)
		s.move(-10) // far below it, and below zero
		s.want(low, low)
	})
}

// TestOwnLevel checks the precedence of the account's own level over the setting. A level above the
// balance waits for a rise.
func TestOwnLevel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		set := func(level *money.Amount) {
			storetest.Update(t, s.db, func(tx *store.Tx) error { return ledger.SetLowTx(tx, s.account.ID, level) })
			s.step()
		}
		s.move(20)
		set(new(50 * money.USD))
		s.want()
		s.move(40)
		s.move(-20)
		s.want(low)
		s.wantBody("$50.00", "$40.00")
		set(nil)
		s.move(-34)
		s.want(low)
		s.move(-2)
		s.want(low, low)
	})
}

// TestNodes checks for one mail after steps of many nodes at the same time.
func TestNodes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		s.move(20)
		storetest.Update(t, s.db, func(tx *store.Tx) error {
			_, err := ledger.MoveTx(tx, s.account.ID, ledger.Payment{Amount: -18 * money.USD, Note: "test"})
			return err
		})
		var wg sync.WaitGroup
		for range 4 {
			other := warnings(t, s.db, 5*money.USD)
			wg.Go(func() {
				if err := other.Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		s.want(low)
	})
}

// TestNodesWithTwoLevels checks that nodes with different levels do not mail again and again.
func TestNodesWithTwoLevels(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		other := warnings(t, s.db, 10*money.USD)
		turns := func() {
			for range 3 {
				if err := other.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				s.step()
			}
		}
		s.move(20)
		s.move(-13)
		turns()
		s.want(low) // below 10 USD, above 5 USD
		s.move(-3)
		turns()
		s.want(low, low)
		s.move(20)
		turns()
		s.move(-17)
		turns()
		s.want(low, low, low)
	})
}

// TestManyAccounts checks the mails of more accounts than fit on a page.
func TestManyAccounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		const accounts = 510
		numbers := fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT `, accounts)
		for _, text := range []string{
			`INSERT INTO account (id, name, email, created_ms) ` + numbers + `'a' || CAST(i AS TEXT), 'A', '', 0 FROM n`,
			`INSERT INTO account_user (id, account, email, password, disabled, role, created_ms) ` + numbers +
				`'u' || CAST(i AS TEXT), 'a' || CAST(i AS TEXT), 'u' || CAST(i AS TEXT) || '@example.com', 'x', 0, '', 0 FROM n`,
			`INSERT INTO ledger_account (id, balance_nano, floor_nano, disabled, seq) ` + numbers +
				`'a' || CAST(i AS TEXT), 10000000000, 0, 0, 0 FROM n`,
		} {
			storetest.Exec(t, s.db, text)
		}
		s.step()
		s.want()
		storetest.Exec(t, s.db, `UPDATE ledger_account SET balance_nano = 1000000000 WHERE id LIKE 'a%' AND id NOT LIKE 'acct%'`)
		s.step()
		s.step()
		if got := len(s.subjects()); got != accounts {
			t.Errorf("%d mails, want %d", got, accounts)
		}
	})
}

// TestFailureKeepsTheCause checks for a later mail after a failure of the outbox.
func TestFailureKeepsTheCause(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		s.move(20)
		storetest.Exec(t, s.db, `ALTER TABLE mail_outbox RENAME TO mail_gone`)
		storetest.Update(t, s.db, func(tx *store.Tx) error {
			_, err := ledger.MoveTx(tx, s.account.ID, ledger.Payment{Amount: -18 * money.USD, Note: "test"})
			return err
		})
		if err := s.Step(t.Context()); err == nil {
			t.Error("a step without an outbox has no error")
		}
		storetest.Exec(t, s.db, `ALTER TABLE mail_gone RENAME TO mail_outbox`)
		s.step()
		s.want(low)
	})
}

// key adds a key and returns its id.
func (s *scene) key(settings account.KeySettings) (key string) {
	s.t.Helper()
	storetest.Update(s.t, s.db, func(tx *store.Tx) error {
		k, _, err := account.CreateKeyTx(tx, s.account.ID, settings)
		key = k.ID
		return err
	})
	return key
}

// spend records the charges of a key today and in total, in USD, as settlements do, and makes a step.
func (s *scene) spend(key string, today, total int64) {
	s.t.Helper()
	now := s.clock.Now().UnixMilli()
	storetest.Exec(s.t, s.db, `UPDATE ledger_key SET spent_nano = $1, last_used_ms = $2 WHERE id = $3`, total*int64(money.USD), now, key)
	storetest.Exec(s.t, s.db, `INSERT INTO ledger_limit (subject, day, spent_nano, used) VALUES ($1, $2, $3, 0)
		ON CONFLICT (subject, day) DO UPDATE SET spent_nano = excluded.spent_nano`, key, now/86400000, today*int64(money.USD))
	s.step()
}

const (
	near80  = "80 % of the daily budget of backend is spent"
	used    = "The daily budget of backend is used up"
	limit80 = "80 % of the total limit of backend is spent"
	limitUp = "The total limit of backend is used up"
)

// TestDailyBudget checks one mail at 80 % and one at 100 % a day, and none for a key out of use.
func TestDailyBudget(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		key := s.key(account.KeySettings{Name: "backend", DailyBudget: new(10 * money.USD)})
		s.spend(key, 7, 7)
		s.want()
		s.spend(key, 8, 8)
		s.spend(key, 9, 9)
		s.want(near80)
		s.wantBody("$8.00", "$10.00", "https://shop.example/console/keys/"+key)
		s.spend(key, 10, 10)
		s.spend(key, 10, 10)
		s.want(near80, used)
		s.clock.Advance(24 * time.Hour)
		s.spend(key, 1, 11)
		s.want(near80, used)
		s.spend(key, 10, 20)
		s.want(near80, used, used)
	})
}

// TestTotalLimit checks one mail at 80 % and one at 100 %, on all days, until the limit changes.
func TestTotalLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		key := s.key(account.KeySettings{Name: "backend", TotalLimit: new(100 * money.USD)})
		s.spend(key, 0, 79)
		s.want()
		s.spend(key, 0, 85)
		s.clock.Advance(25 * time.Hour)
		s.spend(key, 0, 86)
		s.want(limit80)
		s.spend(key, 0, 100)
		s.want(limit80, limitUp)
		storetest.Update(t, s.db, func(tx *store.Tx) error {
			_, err := account.ChangeKeyTx(tx, key, func(k *account.KeySettings) error { k.TotalLimit = new(110 * money.USD); return nil })
			return err
		})
		s.spend(key, 0, 101)
		s.want(limit80, limitUp, limit80)
	})
}

// TestRefusedRequests checks the warning after refused requests, and no warning for an empty balance.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		balance money.Amount
		age     time.Duration
		want    []string
	}{
		"the limit is short":   {50, time.Minute, []string{limit80, limitUp}},
		"the balance is short": {0, time.Minute, []string{limit80}},
		"long ago":             {50, time.Hour, []string{limit80}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, s *scene) {
				if c.balance > 0 {
					s.move(c.balance)
				}
				key := s.key(account.KeySettings{Name: "backend", TotalLimit: new(10 * money.USD)})
				s.spend(key, 0, 9)
				s.want(limit80)
				s.clock.Advance(2 * time.Hour) // the last use is long ago
				s.refuse(key, s.clock.Now().Add(-c.age))
				s.step()
				s.want(c.want...)
			})
		})
	}
}

// refuse writes the receipt of a refused request of a key, because money was short.
func (s *scene) refuse(key string, at time.Time) {
	s.t.Helper()
	storetest.Exec(s.t, s.db, `INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line,
			attempts, prompt_tokens, cached_tokens, completion_tokens, cost_nano, over_nano, held_nano, balance_nano, first_byte_ms,
			duration_ms, created_ms, ended_ms, stands_for)
		VALUES ($1, $2, 0, $3, 'm', 'e', 0, 1, 4, 402, 'insufficient_quota', '', '[]', 0, 0, 0, 0, 0, 0, 0, 0, 0, $4, $4, 1)`,
		id.At("req_", at), s.account.ID, key, at.UnixMilli())
}

const fails = "Your webhook receiver fails"

// TestFailingReceiver checks for one mail about a receiver after ten minutes of failures, until a success.
func TestFailingReceiver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		fail := func(delivery string) {
			now := s.clock.Now().UnixMilli()
			storetest.Exec(t, s.db, `INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
				VALUES ($1, $2, 'evt_1', 'video.completed', 'https://hook.example/x', 'r', '{}', 0, $3)`, delivery, s.account.ID, now)
			storetest.Exec(t, s.db, `INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
				VALUES ($1, $2, 'r', $3, 1, 0, '', '', 0)`, delivery, s.account.ID, now)
		}
		storetest.Exec(t, s.db, `INSERT INTO webhook_receiver (id, account, failing, ready_ms) VALUES ('r', $1, 1, 0)`, s.account.ID)
		fail("dlv_1")
		s.step()
		s.want()
		s.clock.Advance(11 * time.Minute)
		s.step()
		s.step()
		s.want(fails)
		s.wantBody("https://hook.example/x", "Acme", "https://shop.example/console/webhooks")
		storetest.Exec(t, s.db, `DELETE FROM webhook_report`) // as after a success
		s.step()
		s.want(fails, fails)
	})
}

// TestDeclinedTopics checks that a user gets no mails of a declined topic, and a colleague does.
func TestDeclinedTopics(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *scene) {
		storetest.Update(t, s.db, func(tx *store.Tx) error {
			_, err := account.CreateUserTx(tx, s.account.ID, account.SignIn{Email: "bob@example.com", PasswordHash: "$argon2id$"})
			if err != nil {
				return err
			}
			return account.SetMailPreferencesTx(tx, s.user.ID,
				account.MailPreferences{Locale: mail.Chinese, Declined: []mail.Topic{mail.BalanceTopic}})
		})
		key := s.key(account.KeySettings{Name: "backend", DailyBudget: new(10 * money.USD)})
		s.move(20)
		s.move(-18)
		s.spend(key, 8, 8)
		s.want(low, "密钥 backend 的每日预算已用 80%", near80)
	})
}
