package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console"
	"tollgate/internal/ledger"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
	"tollgate/internal/wire"
)

// demoEmail signs in to the demo account's console.
const demoEmail = account.DemoEmail

// demo is the result of a first start, shown once.
type demo struct {
	account  string // id of the account
	secret   string // the only copy of the key
	password string // password of demoEmail for the console

	// Models to try: in chat completions, responses and native messages, and
	// for images and videos.
	model, responses, messages string
	image, video               string
}

// setUp applies the first catalog to a database without a catalog: the operator's file if the
// settings name one, or else, on an empty database, the sandbox with a demo account. One
// transaction does everything, so the setup is complete or absent even if the process dies, and
// only one of several starting nodes does it. setUp returns the demo to print, or nil if it created
// no demo account.
func setUp(ctx context.Context, db *store.DB, s *Settings, providers map[string]catalog.Provider,
	passwords *account.Passwords) (*demo, error) {
	switch {
	case s.Catalog != "":
		return nil, applyFirst(ctx, db, s.Catalog, providers)
	case s.NoDemo:
		return nil, nil
	}
	doc, _, err := catalog.Parse(catalog.Sandbox(), providers)
	if err != nil {
		return nil, fmt.Errorf("read the sandbox catalog: %w", err)
	}
	started := false // another process has started to set up this database
	look := func(tx *store.Tx) error {
		accounts, _, err := account.ListTx(tx, "", 1)
		started = len(accounts) > 0
		return err
	}
	if err := db.View(ctx, look); err != nil || started {
		return nil, err
	}
	password := rand.Text()[:demoPassword]
	hash, err := passwords.Hash(ctx, password)
	if err != nil {
		return nil, fmt.Errorf("make the demo's sign-in: %w", err)
	}
	var created *demo
	err = db.Update(ctx, func(tx *store.Tx) error {
		created = nil
		if err := look(tx); err != nil || started {
			return err
		}
		if _, first, err := catalog.ApplyFirstTx(tx, doc); err != nil || !first {
			return err
		}
		created, err = openDemoTx(tx, doc, hash)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("set up the sandbox: %w", err)
	}
	if created != nil {
		created.password = password
	}
	return created, nil
}

// demoPassword is the length of the demo's password, 5 bits a character.
const demoPassword = 16

// openDemoTx opens the demo account with its credit, one key and one sign-in. The key is only for
// the sandbox's models: models of a later catalog cost real money, and the key was printed on a
// terminal.
func openDemoTx(tx *store.Tx, doc *catalog.Document, passwordHash string) (*demo, error) {
	owner, err := account.CreateTx(tx, account.NewAccount{Name: "demo", Email: demoEmail, PasswordHash: passwordHash, Test: true})
	if err != nil {
		return nil, err
	}
	if err := webhook.OpenTx(tx, owner.ID); err != nil {
		return nil, err
	}
	if _, err := ledger.CreditTx(tx, owner.ID, account.DemoCredit, account.DemoNote); err != nil {
		return nil, err
	}
	_, secret, err := account.CreateKeyTx(tx, owner.ID, account.KeySettings{Name: "demo", AllowedModels: idsOf(doc)})
	if err != nil {
		return nil, err
	}
	return &demo{account: owner.ID, secret: secret, model: firstModel(doc, catalog.KindChat, wire.FormChat),
		responses: firstModel(doc, catalog.KindChat, wire.FormResponses), messages: firstModel(doc, catalog.KindChat, wire.FormMessages),
		image: firstModel(doc, catalog.KindImage, ""), video: firstModel(doc, catalog.KindVideo, "")}, nil
}

// idsOf lists the models of a document.
func idsOf(doc *catalog.Document) []string {
	ids := make([]string, len(doc.Models))
	for i := range doc.Models {
		ids[i] = doc.Models[i].ID
	}
	return ids
}

// firstModel names the first open model of a kind and, if form is not empty, for this form.
func firstModel(doc *catalog.Document, kind catalog.Kind, form wire.Form) string {
	for i := range doc.Models {
		if m := &doc.Models[i]; m.State == catalog.StateOpen && m.Kind == kind && (form == "" || m.Supports(form)) {
			return m.ID
		}
	}
	return ""
}

// applyFirst applies the operator's file if the database has no catalog yet. A file with faults
// stops only such a start; later starts do not read the file.
func applyFirst(ctx context.Context, db *store.DB, path string, providers map[string]catalog.Provider) error {
	head, err := headOf(ctx, db)
	if err != nil || head > 0 {
		return err
	}
	doc, err := readFirst(path, providers)
	if err != nil {
		return err
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		_, _, err := catalog.ApplyFirstTx(tx, doc)
		return err
	})
}

// checkFirst checks the file before the database is changed, if the database has no catalog or no
// tables yet.
func checkFirst(ctx context.Context, db *store.DB, s *Settings, providers map[string]catalog.Provider) error {
	if s.Catalog == "" {
		return nil
	}
	if head, err := headOf(ctx, db); err == nil && head > 0 {
		return nil
	}
	_, err := readFirst(s.Catalog, providers)
	return err
}

// checkFirstMissing is checkFirst for a missing database file. It does not create the file.
func checkFirstMissing(s *Settings, providers map[string]catalog.Provider) error {
	if s.Catalog == "" || !databaseMissing(s) {
		return nil
	}
	_, err := readFirst(s.Catalog, providers)
	return err
}

// headOf returns the current revision of a database's catalog.
func headOf(ctx context.Context, db *store.DB) (int64, error) {
	return store.Read(ctx, db, catalog.HeadTx)
}

// readFirst reads the operator's file.
func readFirst(path string, providers map[string]catalog.Provider) (*catalog.Document, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, &SettingError{"catalog", ExplainPermission(err)}
	}
	doc, _, err := catalog.Parse(raw, providers)
	if err != nil {
		return nil, &SettingError{"catalog", fmt.Errorf("%s: %w", path, err)}
	}
	return doc, nil
}

// welcome prints the results of a first start: the demo account, the operator's token, or both. It
// prints nothing on later starts.
func (a *App) welcome(w io.Writer) error {
	base := a.Base()
	if a.operatorServer != nil {
		base = "http://" + a.operatorServer.Reachable()
	}
	words := operatorWords(a.settings, a.createdToken, base, cmp.Or(a.options.Restart, "tollgate serve"))
	switch {
	case a.demo != nil:
		return a.demo.show(w, a.Base(), words)
	case a.createdToken:
		_, err := fmt.Fprintf(w, "\nWelcome to tollgate. This database was empty.\n\n%s\n\n", words)
		return err
	}
	return nil
}

// operatorWords explains how to open the operator's pages at base and how to start the service
// again. It shows the token only if the first start has created it.
func operatorWords(s *Settings, created bool, base, restart string) string {
	const to = "To run it (customers, credit, lines, prices), "
	pages := base + console.Base + "/operator"
	again := "\n\nCtrl-C stops the service. To start it again, in this folder:\n\n  " + restart
	switch {
	case s.AdminToken == "":
		return to + "start every node again with the same token of your choice,\nand open " + pages +
			":\n\n  TOLLGATE_ADMIN_TOKEN=" + rand.Text() + " " + restart
	case created:
		return to + "open " + pages + "\nwith the operator's token, which is in " + s.AdminTokenFile + ":\n\n  " + s.AdminToken + again
	}
	with := "the admin_token."
	if s.AdminTokenFile != "" {
		with = "the operator's token, which is in " + s.AdminTokenFile + "."
	}
	return to + "open " + pages + "\nwith " + with + again
}

// show prints the key and example commands. It writes to standard output, separate from the log and
// the ready line, so that the key is easy to find and copy.
func (d *demo) show(w io.Writer, base, operator string) error {
	chat := fmt.Sprintf(`curl %s/v1/chat/completions \
    -H 'Authorization: Bearer %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "%s", "messages": [{"role": "user", "content": "Hello!"}]}'`, base, d.secret, d.model)
	stream := strings.Replace(strings.Replace(chat, "curl ", "curl -N ", 1), `"messages"`, `"stream": true, "messages"`, 1)
	responses := fmt.Sprintf(`curl %s/v1/responses \
    -H 'Authorization: Bearer %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "%s", "input": "Hello!"}'`, base, d.secret, d.responses)
	messages := fmt.Sprintf(`curl %s/native/v1/messages \
    -H 'x-api-key: %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "%s", "max_tokens": 200, "messages": [{"role": "user", "content": "Hello!"}]}'`, base, d.secret, d.messages)
	job := func(kind, model, prompt string) string {
		return fmt.Sprintf(`curl %s/v1/%ss/generations \
    -H 'Authorization: Bearer %s' \
    -H 'Content-Type: application/json' \
    -d '{"model": "%s", "prompt": "%s"}'

  curl %[1]s/v1/%[2]ss/jobs/JOB -H 'Authorization: Bearer %[3]s'`, base, kind, d.secret, model, prompt)
	}
	image := job("image", d.image, "A lighthouse in the fog")
	video := job("video", d.video, "A paper boat on a river")
	usage := fmt.Sprintf(`curl %s/v1/usage -H 'Authorization: Bearer %s'`, base, d.secret)
	_, err := fmt.Fprintf(w, `
Welcome to tollgate. This database was empty, so it now has a sandbox catalog
that needs no network, and a demo account (%s) with %s USD.

Console:   %s
Email:     %s
Password:  %s   (shown only this once)

API key for the models of the sandbox, shown only this once:

  %s

Ask a question:

  %s

The same, streamed:

  %s

In the responses form, and in the native messages form:

  %s

  %s

Draw an image, and get its link a few seconds later, with the id of the answer
in place of JOB; a video likewise:

  %s

  %s

See what it cost:

  %s

%s

`, d.account, account.DemoCredit, base+console.Base, demoEmail, d.password, d.secret, chat, stream, responses, messages,
		image, video, usage, operator)
	return err
}
