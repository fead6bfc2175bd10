package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/identity"
)

// TestSignInWithSettings checks the rules for identity providers. Each error names the provider and the
// remedy.
func TestSignInWithSettings(t *testing.T) {
	t.Parallel()
	list := func(providers ...string) string { return "sign_in_with: [" + strings.Join(providers, ", ") + "]" }
	at := func(issuer string) string {
		return list("{name: a, issuer: '" + issuer + "', client_id: a, client_secret: b}")
	}
	const hub = "name: a, kind: github, client_id: a, client_secret: b"
	provider := func(fields string) string {
		return "sign_in_with: [{name: corp, issuer: 'https://idp.example', client_id: a, client_secret: b, " + fields + "}]"
	}
	checkSettings(t, map[string]settingsCase{
		"off":    {"", ""},
		"null":   {"sign_in_with:", ""},
		"one":    {provider(""), ""},
		"GitHub": {"sign_in_with:\n  - name: hub\n    kind: github\n    client_id: a\n    client_secret: b\n", ""},
		"all fields": {provider("title: Corp, scopes: [groups], for: both, domains: [Example.com], " +
			"email_verified: always, second_factor: amr=mfa"), ""},
		"this machine":  {at("http://127.0.0.1:5556/dex"), ""},
		"http":          {at("http://idp.example"), "a: issuer must be an https:// address"},
		"no issuer":     {"sign_in_with: [{name: a, client_id: a, client_secret: b}]", "a: issuer must be the https:// address"},
		"every tenant":  {at("https://login.microsoftonline.com/common/v2.0"), "must name your tenant"},
		"unknown kind":  {provider("kind: saml"), "corp: kind must be oidc or github"},
		"unknown field": {provider("colour: red"), `unknown field "colour"`},
		"a mapping":     {"sign_in_with: {name: corp}", "must be a YAML list of providers"},
		"a text":        {"sign_in_with: google", "must be a YAML list of providers"},
		"a bad name":    {strings.Replace(provider(""), "corp", "Corp/../x", 1), "provider 1: name must be"},
		"no client":     {"sign_in_with: [{name: a, issuer: 'https://idp.example', client_secret: b}]", "a: client_id is required"},
		"no secret":     {"sign_in_with: [{name: a, issuer: 'https://idp.example', client_id: b}]", "a: client_secret is required"},
		"a secret that is gone": {strings.Replace(provider(""), "client_secret: b", "client_secret: '${file:/none/such}'", 1),
			"corp: client_secret: the file /none/such cannot be read"},
		"twice": {list("{"+hub+"}", "{name: a, issuer: 'https://idp.example', client_id: a, client_secret: b}"),
			"a: name and issuer must differ"},
		"one issuer twice": {list("{"+hub+"}", "{name: b, kind: github, client_id: a, client_secret: b}"),
			"b: name and issuer must differ"},
		"for whom":            {provider("for: everybody"), "corp: for must be customers, operators or both"},
		"trust":               {provider("email_verified: yes"), "corp: email_verified must be"},
		"a factor":            {provider("second_factor: sometimes"), "corp: second_factor must be always, or CLAIM=VALUE"},
		"a domain":            {provider("domains: [a@b]"), "corp: domains:"},
		"GitHub's claims":     {list("{" + hub + ", hosted_domain: x.example}"), "GitHub has no claims"},
		"roles of customers":  {provider("operators: {claim: groups, roles: {admins: operator}}"), "operators needs for: operators or both"},
		"roles without claim": {provider("for: both, operators: {roles: {admins: operator}}"), "operators needs both claim and roles"},
		"an unknown role": {provider("for: both, operators: {claim: groups, roles: {admins: king}}"),
			`the role of "admins" must be one of`},
		"roles": {provider("for: operators, operators: {claim: groups, roles: {admins: operator}}"), ""},
		"an address of its own": {provider("for: both") + "\nadmin_listen: 127.0.0.1:1\nadmin_token: 0123456789abcdef",
			"does not work with admin_listen"},
	}, checkSignInWith)
}

// TestSignInWithSources reads the same providers from the settings file, a variable and a file of their
// own, with defaults and the secret from a file. No error has the secret.
func TestSignInWithSources(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := "- name: corp\n  issuer: https://idp.example/\n  client_id: a\n" +
		"  client_secret: ${file:" + write("secret", "the-secret\n") + "}\n" +
		"- name: hub\n  kind: github\n  title: My Hub\n  client_id: b\n  client_secret: c\n"
	for name, src := range map[string]Sources{
		"the settings file": {File: write("tollgate.yaml", "sign_in_with:\n  "+strings.ReplaceAll(list, "\n", "\n  "))},
		"a variable":        {Environ: map[string]string{"TOLLGATE_SIGN_IN_WITH": list}},
		"a file":            {Environ: map[string]string{"TOLLGATE_SIGN_IN_WITH_FILE": write("providers.yaml", list)}},
	} {
		got, err := ReadSettings(src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := got.SignInWith
		if len(p) != 2 || p[0].Title != "Corp" || p[0].Kind != identity.OIDC || p[0].Issuer != "https://idp.example/" ||
			p[0].ClientSecret != "the-secret" ||
			p[0].For != identity.Customers || p[0].EmailTrust != identity.ByClaim ||
			p[1].Issuer != identity.GitHubURL || p[1].Title != "My Hub" {
			t.Errorf("%s: got %+v, want corp and hub with their defaults", name, p)
		}
	}
	_, err := ReadSettings(Sources{Environ: map[string]string{"TOLLGATE_SIGN_IN_WITH": "[{name: a, client_secret: hush}]"}})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("a provider without an issuer: got the error %v, want one without the secret", err)
	}
}
