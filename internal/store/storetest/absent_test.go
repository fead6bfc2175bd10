package storetest

import "testing"

// TestAbsentServerSkips checks that tests on PostgreSQL are skipped only if `make test` has set
// Absent, and that the SQLite half runs.
func TestAbsentServerSkips(t *testing.T) {
	t.Setenv(EnvPostgres, Absent)
	for name, open := range map[string]func(testing.TB) string{"empty": PostgreSQL, "migrated": migratedPostgreSQL} {
		skipped := false
		t.Run(name, func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			open(t)
		})
		if !skipped {
			t.Errorf("%s: the test ran, want it skipped", name)
		}
	}
	if SQLite(t) == "" {
		t.Error("got no address for SQLite, want one")
	}
}
