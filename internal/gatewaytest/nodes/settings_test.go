// Package nodes owns tests of several processes on one database with different settings.
package nodes

import (
	"encoding/base64"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// status returns the operator's page Status of a node.
func status(t *testing.T, n *scene.Node) string {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: n.Client.Transport, Jar: jar}
	resp, err := client.PostForm(n.URL+"/console/operator/sign-in", url.Values{"admin_token": {scene.AdminToken}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the page Status: %d, %v", resp.StatusCode, err)
	}
	return html.UnescapeString(string(body))
}

// TestDifferentSettings starts two processes with different settings. The page Status of both names the
// settings, and each log has one line about them, until the second process is restarted with the settings of
// the first one. No secret reaches the database.
func TestDifferentSettings(t *testing.T) {
	t.Parallel()
	const password = "a-password-of-the-server"
	binary := scene.Binary(t)
	database := storetest.PostgreSQL(t) // one process serves a SQLite file
	a := scene.NewNode(t, binary, database, map[string]string{"low_balance": "5", "smtp_server": "127.0.0.1:1", "smtp_user": "shop",
		"smtp_password": password, "mail_from": "shop@example.com", "public_url": "https://api.example.com",
		"secret_key": base64.StdEncoding.EncodeToString(make([]byte, 32))})
	other := *a
	other.Settings = maps.Clone(a.Settings)
	maps.Copy(other.Settings, map[string]string{"low_balance": "10", "smtp_password": "another", "log_level": "warn", "shutdown_grace": "5s"})
	b := &other
	b.Restart()
	const title, names = "Nodes run with different settings.", "low_balance, smtp_password: one value on "
	const began, ended = "the nodes run with different settings", "all nodes run with the same settings again"
	for _, n := range []*scene.Node{a, b} {
		if page := status(t, n); !strings.Contains(page, title) || !strings.Contains(page, names) {
			t.Errorf("the page Status does not name the settings: %s", page)
		}
		scene.Eventually(t, "the log names the settings", func() bool {
			return strings.Contains(n.Output(), `settings="low_balance, smtp_password"`)
		})
	}
	b.CheckStop(t)
	scene.Eventually(t, "the log has the end", func() bool { return strings.Contains(a.Output(), ended) })
	b.Settings = a.Settings
	b.Restart()
	for _, n := range []*scene.Node{a, b} {
		if page := status(t, n); strings.Contains(page, title) {
			t.Errorf("the page Status still names different settings: %s", page)
		}
	}
	if got := strings.Count(a.Output(), began); got != 1 {
		t.Errorf("the log has %d lines about different settings, want 1", got)
	}
	var rows, secrets int
	if err := scene.OpenDatabase(t, database).QueryRow(`SELECT COUNT(*), COUNT(*) FILTER (WHERE strpos(digests, $1) > 0)
		FROM node_settings`, password).Scan(&rows, &secrets); err != nil || rows != 2 || secrets != 0 {
		t.Errorf("%d rows of settings, %d with the password, error %v; want 2 without it", rows, secrets, err)
	}
}
