package payments

import (
	"database/sql"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// disk is the disk of a shop's database.
type disk struct{ fill, free func() }

// TestFullDisk fills the disk of the database during the payment, the refund, the dispute, an invitation, after a call
// of Stripe's API, and after the mail server has taken a mail. Everybody gets a 503 meanwhile. Once the disk has room,
// the repetitions have their effect once.
//
// On SQLite the kernel limits the size of the files of the process. On PostgreSQL each change of a table of payments or
// mails fails like on a full disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		s := newShop(t, database, database)
		d := disk{func() { s.limitFiles(4096) }, func() { s.limitFiles(unix.RLIM_INFINITY) }}
		if !strings.HasPrefix(database, "sqlite:") {
			d = tableDisk(t, s.db)
		}
		s.checkRefused(d, "an invitation", func() (int, error) { return s.invite("bob@example.com") })
		s.insist("invitation", func() (int, error) { return s.invite("bob@example.com") })
		s.purchase(func(step string, do func()) {
			switch step {
			case paying, disputing:
				for _, e := range s.stripe.Events()[s.sent:] {
					s.checkRefused(d, "the message "+e.Type, func() (int, error) { return s.send(e) })
				}
			case refunding:
				s.checkRefused(d, "a refund", func() (int, error) { return s.refund(s.newest(), "25.00") })
			}
			do()
		})
		s.purchase(func(step string, do func()) {
			if step == refunding {
				s.stripe.OnCall(func(method, _ string) {
					if method == http.MethodPost {
						d.fill()
					}
				})
				if status, err := s.refund(s.newest(), "25.00"); err != nil || status != http.StatusServiceUnavailable {
					t.Errorf("a refund after its call: got %d, %v, want 503", status, err)
				}
				s.stripe.OnCall(nil)
				d.free()
			}
			do()
		})
		s.sendMails()
		failures := func() int { return strings.Count(s.n.Output(), "mail: cannot read or write the outbox") }
		scene.Eventually(t, "the outbox works", func() bool {
			return strings.Count(s.n.Output(), "mail: can read or write the outbox again") == failures()
		})
		before := failures()
		s.mails.OnMail(sync.OnceFunc(d.fill))
		s.insist("invitation", func() (int, error) { return s.invite("eve@example.com") })
		scene.Eventually(t, "the sent mail cannot be recorded", func() bool { return failures() > before })
		d.free()
		s.checkEnd()
	})
}

// invite invites a user of the account.
func (s *shop) invite(email string) (int, error) {
	return s.operator("/accounts/"+s.id+"/users", `{"email":"`+email+`"}`)
}

// checkRefused checks that a request gets a 503 while the disk is full.
func (s *shop) checkRefused(d disk, what string, request func() (int, error)) {
	s.t.Helper()
	d.fill()
	if status, err := request(); err != nil || status != http.StatusServiceUnavailable {
		s.t.Errorf("%s: got %d, %v, want 503", what, status, err)
	}
	d.free()
}

// limitFiles limits the size of the files of the process, in bytes.
func (s *shop) limitFiles(size uint64) {
	if err := unix.Prlimit(s.n.Pid(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
		s.t.Error(err)
	}
}

// tableDisk returns a disk with triggers that fail like a full disk.
func tableDisk(t *testing.T, db *sql.DB) disk {
	run := func(statements ...string) {
		for _, text := range statements {
			if _, err := db.Exec(text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	run(`CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`)
	all := []string{"topup", "topup_reversal", "ledger_entry", "mail_outbox", "invoice_document"}
	return disk{fill: func() {
		for _, table := range all {
			run(`CREATE OR REPLACE TRIGGER disk_full BEFORE INSERT OR UPDATE OR DELETE ON ` + table + ` EXECUTE FUNCTION disk_full()`)
		}
	}, free: func() {
		for _, table := range all {
			run(`DROP TRIGGER IF EXISTS disk_full ON ` + table)
		}
	}}
}
