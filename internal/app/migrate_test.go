package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestFirstStartLosesItsConnection breaks the connection at a COMMIT of a migration. The start goes
// on with the remaining migrations.
func TestFirstStartLosesItsConnection(t *testing.T) {
	t.Parallel()
	effects := map[string]faultproxy.Effect{"the COMMIT is lost": faultproxy.DropCommit, "the answer is lost": faultproxy.DropAnswer}
	for name, effect := range effects {
		for cutName, cut := range map[string]faultproxy.Cut{"reset": faultproxy.Reset, "close": faultproxy.Close} {
			for _, down := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, down %v", name, cutName, down), func(t *testing.T) {
					t.Parallel()
					const schema = 2 // the first transaction creates goose's table
					startWithFault(t, faultproxy.Fault{Effect: effect, Cut: cut, Nth: schema}, down)
				})
			}
		}
	}
}

// startWithFault starts a service whose database has a fault. If down is true, the
// database is down from the fault until the service waits for it.
func startWithFault(t *testing.T, fault faultproxy.Fault, down bool) {
	t.Helper()
	proxy := faultproxy.New(t, storetest.PostgreSQL(t))
	fault.Match = faultproxy.Having("INSERT INTO goose_db_version")
	if down {
		fault.Then = faultproxy.Down
	}
	hit := proxy.Arm(fault)
	log := &scene.Buffer{}
	open := func() {
		<-hit.Done() // the service may see the cut before the proxy is down
		proxy.Open()
	}
	waiting := &trigger{Buffer: log, text: "trying again", call: open}
	a, err := New(t.Context(), testSettings(t, proxy.URL(), ""), Options{Stdout: &scene.Buffer{}, Stderr: waiting, Lookup: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := a.Serve(ctx); err != nil {
			t.Error(err)
		}
	}()
	if !hit.Happened() || !strings.Contains(log.String(), "trying again") {
		t.Errorf("there was no fault, or nothing was logged: %s", log.String())
	}
	db, err := store.Open(t.Context(), proxy.URL(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := db.Schema(t.Context())
	if err := errors.Join(err, db.Close(), schema.Check()); err != nil {
		t.Error(err)
	}
}

// trigger runs call at each write that contains text.
type trigger struct {
	*scene.Buffer
	text string
	call func()
}

func (t *trigger) Write(p []byte) (int, error) {
	if strings.Contains(string(p), t.text) {
		t.call()
	}
	return t.Buffer.Write(p)
}
