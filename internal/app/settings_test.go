package app

import (
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/invoice"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/topup"
	"tollgate/internal/topup/stripe"
)

// settingsFrom reads settings from a file's text, an environment and flags.
func settingsFrom(file string, env, flags map[string]string) (*Settings, error) {
	return Sources{Flags: flags, Environ: env}.settings("tollgate.yaml", []byte(file))
}

func TestSettingsDefaults(t *testing.T) {
	t.Parallel()
	got, err := settingsFrom("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		Listen: "127.0.0.1:8080", Database: "sqlite:data/tollgate.db", Media: "file:data/media", ownFiles: []string{"tollgate.yaml"},
		StartLimit: 15 * time.Minute, MediaRetry: time.Hour, JobRetention: 72 * time.Hour,
		ResponseRetention: 24 * time.Hour, ResponseStorage: 256 << 20, MediaRetention: 1440 * time.Hour,
		DeliveryRetention: 720 * time.Hour, WebhookTimeout: 10 * time.Second,
		WebhookRetries: []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour},
		MaxBody:        32 << 20, StartWait: time.Minute, ShutdownGrace: 30 * time.Second, RequestTimeout: 15 * time.Minute,
		PictureWait: 2 * time.Minute, CountTokensPerMinute: 300,
		OutageGrace: 30 * time.Second, QueueWait: 2 * time.Second, LockTimeout: time.Second,
		MaxAnswer: 64 << 20, ProviderConnections: "direct", NodeLease: 15 * time.Second,
		RequestRetention: 2160 * time.Hour, DatabaseConnections: 16, KeyCache: 10_000, LogLevel: slog.LevelInfo, LogFormat: "text",
		SignUp: account.SignUpClosed, ChallengeScriptURL: turnstileScript, ChallengeVerifyURL: turnstileVerify,
		SMTPSecurity: mail.StartTLS, LowBalance: 5 * money.USD,
		StripeURL:   stripe.DefaultURL,
		EPayMethods: []topup.PayMethod{{Name: "alipay", Title: "Alipay"}, {Name: "wxpay", Title: "WeChat Pay"}},
		Topup:       topup.TermsTexts{Currency: "usd", Amounts: []string{"10", "20", "50", "100"}, Minimum: "5", Maximum: "1000"},
		Invoice:     invoice.SellerTerms{InvoiceSeries: "INVOICE", CreditSeries: "CREDIT", TaxName: "VAT"},
	}
	got.texts = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults:\n got %+v\nwant %+v", got, want)
	}
}

func TestSettingsPrecedence(t *testing.T) {
	t.Parallel()
	file := "listen: 127.0.0.1:1\nmax_body: 1KiB\nlog_level: warn\ndatabase_connections: 4\n"
	env := map[string]string{"TOLLGATE_LISTEN": "127.0.0.1:2", "TOLLGATE_MAX_BODY": "2KiB", "TOLLGATE_LOG_LEVEL": ""}
	got, err := settingsFrom(file, env, map[string]string{"listen": "127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	if got.Listen != "127.0.0.1:3" || got.MaxBody != 2048 || got.LogLevel != slog.LevelWarn || got.DatabaseConnections != 4 {
		t.Errorf("flags before environment before file before default: got %+v", got)
	}
}

func TestSettingsValues(t *testing.T) {
	t.Parallel()
	file := `
# what an operator may write
public_url: "https://api.example.com/"
database: postgres://u:p@db/tollgate
media: s3://results?endpoint=https://s3.example.com&region=eu&path_style=true
cors_origins: [https://app.example.com, "http://localhost:3000"]
trusted_proxies: [10.0.0.0/8, 192.0.2.7, "::ffff:198.51.100.0/120"]
private_networks: 127.0.0.0/8, ::1
webhook_retries: [1s, 2s]
max_body: 10MB
max_answer: 1048576
no_demo: true
expose_line: false
unknown_fields: refuse
alert_url: null
otlp_endpoint: http://collector:4318/
otlp_headers: "authorization=Bearer a=b, x-team=core"
log_format: json
`
	got, err := settingsFrom(file, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	networks := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"public_url", got.PublicURL, "https://api.example.com"},
		{"cors_origins", got.CORSOrigins, []string{"https://app.example.com", "http://localhost:3000"}},
		{"trusted_proxies", got.TrustedProxies, networks("10.0.0.0/8", "192.0.2.7/32", "198.51.100.0/24")},
		{"private_networks", got.PrivateNetworks, networks("127.0.0.0/8", "::1/128")},
		{"webhook_retries", got.WebhookRetries, []time.Duration{time.Second, 2 * time.Second}},
		{"max_body", got.MaxBody, int64(10_000_000)},
		{"max_answer", got.MaxAnswer, int64(1 << 20)},
		{"no_demo", got.NoDemo, true},
		{"expose_line", got.ExposeLine, false},
		{"unknown_fields", got.RefuseUnknownFields, true},
		{"alert_url", got.AlertURL, ""},
		{"otlp_endpoint", got.OTLPEndpoint, "http://collector:4318"},
		{"otlp_headers", got.OTLPHeaders, map[string]string{"authorization": "Bearer a=b", "x-team": "core"}},
		{"log_format", got.LogFormat, "json"},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestSettingsFaults(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, c := range []struct {
		name, file string
		env, flags map[string]string
		want       []string
	}{
		{name: "unknown key", file: "listen: :80\nlisten_on: :81\n", want: []string{"listen_on", "tollgate.yaml:2:1", "unknown setting"}},
		{name: "repeated key", file: "listen: :80\nlisten: :81\n", want: []string{"tollgate.yaml:2:1", "listen"}},
		{name: "not a mapping", file: "- a\n", want: []string{"tollgate.yaml", "mapping"}},
		{name: "two documents", file: "listen: :80\n---\nlisten: :81\n", want: []string{"tollgate.yaml", "mapping"}},
		{name: "no YAML", file: "listen: [\n", want: []string{"config (tollgate.yaml"}},
		{name: "nested", file: "listen: {host: a}\n", want: []string{"listen", "tollgate.yaml:1:1", "plain value"}},
		{name: "list for one value", file: "listen: [a, b]\n", want: []string{"listen", "not a list"}},
		{name: "listen without port", flags: map[string]string{"listen": "localhost"}, want: []string{"listen (--listen)", "HOST:PORT"}},
		{name: "listen port", env: map[string]string{"TOLLGATE_LISTEN": "h:70000"}, want: []string{"listen (TOLLGATE_LISTEN)", "65535"}},
		{name: "empty", flags: map[string]string{"max_body": ""}, want: []string{"max_body (--max-body)", "32MiB"}},
		{name: "negative size", file: "max_body: -1\n", want: []string{"max_body (tollgate.yaml:1:1)"}},
		{name: "overflowing size", file: "max_body: 9223372036854775807GiB\n", want: []string{"max_body"}},
		{name: "duration without unit", file: "shutdown_grace: 30\n", want: []string{"shutdown_grace", "duration"}},
		{name: "duration of zero", file: "node_lease: 0s\n", want: []string{"node_lease", "above 0"}},
		{name: "lock timeout too long", file: "lock_timeout: 5s\n", want: []string{"lock_timeout", "between 1ms and 4s"}},
		{name: "lock timeout too short", file: "lock_timeout: 10us\n", want: []string{"lock_timeout", "between 1ms and 4s"}},
		{name: "lease too short", file: "node_lease: 500ms\n", want: []string{"node_lease", "at least 1s"}},
		{name: "retries", file: "webhook_retries: [1m, soon]\n", want: []string{"webhook_retries"}},
		{name: "headers without values", file: "otlp_headers: hunter2\n", want: []string{"otlp_headers", "NAME=VALUE"}},
		{name: "headers with lines", file: "otlp_headers: \"a=hunter2\\nb\"\n", want: []string{"otlp_headers", "NAME=VALUE"}},
		{name: "collector with a query", file: "otlp_endpoint: http://collector:4318?a=b\n", want: []string{"otlp_endpoint", "query"}},
		{name: "origin with a path", file: "cors_origins: [https://app.example.com/]\n", want: []string{"cors_origins", "app.example.com/"}},
		{name: "origin without a scheme", file: "cors_origins: [app.example.com]\n", want: []string{"cors_origins"}},
		{name: "origin with its usual port", file: "cors_origins: [\"https://app.example.com:443\"]\n", want: []string{"cors_origins"}},
		{name: "origins of a whole domain", file: "cors_origins: [\"https://*.example.com\"]\n", want: []string{"cors_origins", "wildcard"}},
		{name: "all origins and one", file: "cors_origins: [\"*\", https://app.example.com]\n", want: []string{"cors_origins", "alone"}},
		{name: "network", file: "trusted_proxies: [10.0.0.0/33]\n", want: []string{`1:1): "10.0.0.0/33" is not a CIDR such as 10.0.0.0/8`}},
		{name: "wide mapped network", file: "trusted_proxies: [\"::ffff:0:0/64\"]\n", want: []string{"trusted_proxies"}},
		{name: "public_url", file: "public_url: api.example.com\n", want: []string{"public_url", "https://"}},
		{name: "database", file: "database: mysql://u:" + secret + "@h/d\n", want: []string{"database", "sqlite:PATH"}},
		{name: "media", file: "media: s3://b?acl=public\n", want: []string{"media"}},
		{name: "admin token", file: "admin_token: \"" + secret + " x\"\n", want: []string{"admin_token"}},
		{name: "level", file: "log_level: loud\n", want: []string{"log_level", "debug, info"}},
		{name: "switch", file: "no_demo: perhaps\n", want: []string{"no_demo", "true or false"}},
		{name: "connections", file: "database_connections: 0\n", want: []string{"database_connections", "from 2"}},
		{name: "key cache", file: "key_cache: 0\n", want: []string{"key_cache", "from 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := settingsFrom(c.file, c.env, c.flags)
			if err == nil {
				t.Fatal("no fault")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), secret) {
				t.Errorf("more than a line, or a secret: %q", err)
			}
		})
	}
}

func TestSettingsFileMissing(t *testing.T) {
	t.Parallel()
	_, err := ReadSettings(Sources{Environ: map[string]string{ConfigEnv: "gone.yaml"}})
	if err == nil || err.Error() != "config (gone.yaml): no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func FuzzSettingsFile(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:1\n"))
	f.Add([]byte("a: &x [1, *x]\n<<: {listen: b}\n"))
	f.Add([]byte("webhook_retries: [1m, ~]\n? {a: b}\n: c\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		values, err := parseFile("f.yaml", raw)
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
		for key := range values {
			if _, known := settingOf(key); !known {
				t.Errorf("unknown key %q passed", key)
			}
		}
	})
}
