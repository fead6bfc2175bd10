package app

import (
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog/vault"
	"tollgate/internal/console/page"
	"tollgate/internal/identity"
	"tollgate/internal/invoice"
	"tollgate/internal/mail"
	"tollgate/internal/money"
	"tollgate/internal/topup"
	"tollgate/internal/topup/epay"
	"tollgate/internal/topup/stripe"
)

// Settings is everything an operator can set for one process. Values are
// validated when they are read (ReadSettings); nothing here is checked again.
type Settings struct {
	Listen string // HOST:PORT; port 0 picks a free one
	// public base address, without a slash at the end; if empty, http:// + the address listened on
	PublicURL                string
	Database                 string         // sqlite:PATH or postgres://…
	Media                    string         // file:DIR or s3://BUCKET?…
	MediaURL                 string         // address of the media host in links; if empty, the public address + /media
	Catalog                  string         // path of the file applied while the database has no catalog, if not empty
	AdminToken               string         // bearer token of the operator API; if empty, the API answers 404
	AdminTokenFile           string         // file of AdminToken; empty if the token was set directly
	ownFiles                 []string       // the settings file and the files of secrets
	SecretKeys               vault.KeyRing  // encrypt the secrets of lines in the database; if empty, none are stored
	AdminListen              string         // host:port of the operator API; if empty, Listen serves it
	PrivateNetworks          []netip.Prefix // non-public networks that user-given addresses may reach
	StartLimit               time.Duration  // longest wait of a job for its start
	MediaRetry               time.Duration  // longest time a result is kept if the media store does not take it
	JobRetention             time.Duration  // age at which job records are deleted
	ResponseRetention        time.Duration  // age at which stored responses are deleted; zero stores none
	ResponseStorage          int64          // largest size of an account's stored responses, bytes
	MediaRetention           time.Duration  // age at which result files are deleted
	DeliveryRetention        time.Duration  // age at which the delivery log is deleted
	WebhookTimeout           time.Duration  // longest wait for a receiver's answer
	WebhookRetries           []time.Duration
	MaxBody                  int64         // largest request body, bytes
	StartWait                time.Duration // longest wait of a start for a database or bucket
	ShutdownDelay            time.Duration // how long a stopping process serves as before, except /readyz
	ShutdownGrace            time.Duration // longest wait of a stopping process for running requests
	RequestTimeout           time.Duration // longest time of a chat request over all lines
	PictureWait              time.Duration // longest wait of a submission of images for its result; 0 means none
	CountTokensPerMinute     int           // token counts of an account; 0 means no limit
	OutageGrace              time.Duration // longest wait of running answers for an absent database
	QueueWait                time.Duration // longest time of an admission in the ledger's queue
	LockTimeout              time.Duration // longest wait of a batch for a locked row
	MaxAnswer                int64         // largest buffered answer of a provider, bytes
	ProviderConnections      string        // "direct" or "standard"
	NodeLease                time.Duration // silence after which a node is dead
	RequestRetention         time.Duration // age at which rows of the request log are deleted
	DatabaseConnections      int           // PostgreSQL connections of this process
	KeyCache                 int           // API keys cached by this process
	TrustedProxies           []netip.Prefix
	MaxConnections           int      // of clients; zero derives it from the process's file descriptors
	MaxConnectionsPerAddress int      // from one client address; zero means half of MaxConnections
	CORSOrigins              []string // origins of the web pages whose scripts may call the API; "*" means all
	MetricsListen            string   // host:port that serves /metrics without a token, if not empty
	ExposeLine               bool     // answers carry x-tollgate-line
	RefuseUnknownFields      bool     // refuse fields of requests that no line would get
	AlertURL                 string   // URL for alerts, if not empty
	SMTPServer               string   // host:port of the server that takes mails; if empty, mail is off
	SMTPSecurity             mail.Security
	SMTPUser                 string // if empty, without authentication
	SMTPPassword             string
	MailFrom                 string       // address of the sender
	AlertMail                []string     // readers of alerts
	LowBalance               money.Amount // level of accounts without their own level; 0 means none
	ServiceName              string       // name of this service; if empty, mails have the host of PublicURL
	shop                     brandSettings
	PublicPrices             bool // everybody sees the models and their prices
	PublicStatus             bool // everybody sees the availability of models
	legal                    page.Legal
	SignUp                   account.SignUpMode
	SignUpDomains            []string // of the addresses that may sign up, if SignUp is account.SignUpDomains
	Trial                    account.Trial
	ChallengeSiteKey         string // if empty, sign-ups have no challenge
	ChallengeSecret          string
	ChallengeScriptURL       string
	ChallengeVerifyURL       string
	SignInWith               []identity.Config // identity providers, in the order of their buttons
	OTLPEndpoint             string            // base address of the collector of traces; if empty, from OpenTelemetry's variables
	OTLPHeaders              map[string]string
	StripeKey                string // API key of Stripe; if empty, Stripe takes no payments
	StripeWebhookSecret      string // signing secret of Stripe's webhook endpoint
	StripeURL                string // base address of Stripe's API
	StripeTax                bool   // Stripe Tax adds a tax to payments
	EPayURL                  string // base address of an EPay site; if empty, EPay takes no payments
	EPayPID                  string // the operator's number at the site
	EPayKey                  string // the operator's key at the site
	EPayMethods              []topup.PayMethod
	EPayRefunds              bool // the site pays back by a call
	Topup                    topup.TermsTexts
	TopupDisputeDisables     bool // a disputed payment disables its account
	Invoice                  invoice.SellerTerms
	NoDemo                   bool // a first start creates neither the demo account nor the sandbox catalog
	LogLevel                 slog.Level
	LogFormat                string   // text or json
	Unknown                  []string // variables with the prefix of settings that may belong to other programs
	// texts has the texts of the values by key. For a secret in a file, it has the content of the file.
	texts map[string]string
}

// Setting describes one setting: its name in each source, its default and its meaning. The file
// uses Key, the command line Flag, the environment Env.
type Setting struct {
	Key     string
	Default string                  // as text; may be empty
	Help    string                  // one clause, for --help and the documents
	Switch  bool                    // true or false; the flag alone means true
	List    bool                    // several values: a YAML list, or separated by commas
	YAML    bool                    // a YAML document: a node of the file, or its text elsewhere
	Secret  bool                    // its value may contain a secret: see Hides
	Local   bool                    // nodes of one database may have different values
	read    func(text string) error // sets the field of the Settings
}

// Flag returns the long flag of the setting, without dashes in front.
func (s Setting) Flag() string { return strings.ReplaceAll(s.Key, "_", "-") }

// NamesFile reports whether the value is the path of a file with a secret.
func (s Setting) NamesFile() bool { return s.Secret && strings.HasSuffix(s.Key, fileSuffix) }

// Hides reports whether a message leaves the value out. The path of a SQLite database is not a
// secret.
func (s Setting) Hides(value string) bool {
	return s.Secret && !s.NamesFile() && !strings.HasPrefix(value, "sqlite:")
}

// Env returns the environment variable of the setting.
func (s Setting) Env() string { return envPrefix + strings.ToUpper(s.Key) }

// AllSettings returns every setting, in the order of the documents. Each secret is followed by a
// setting for its file.
func AllSettings() []Setting { return new(Settings).all() }

// all returns every setting. Reading one sets its field of s.
func (s *Settings) all() []Setting {
	var all []Setting
	for _, setting := range s.plain() {
		all = append(all, setting)
		if setting.Secret {
			all = append(all, setting.inFile(s))
		}
	}
	return all
}

// to returns a function that reads a text into a field.
func to[T any](field *T, read func(text string) (T, error)) func(text string) error {
	return func(text string) error {
		value, err := read(text)
		if err == nil {
			*field = value
		}
		return err
	}
}

// plain returns the settings with direct values.
func (s *Settings) plain() []Setting {
	return []Setting{
		{Key: "listen", Local: true, Default: "127.0.0.1:8080", Help: "address to listen on; port 0 picks a free one",
			read: to(&s.Listen, readListen)},
		{Key: "public_url", Help: "base address for users (default: http:// + the listen address)",
			read: to(&s.PublicURL, readPublicURL)},
		{Key: "database", Local: true, Default: "sqlite:data/tollgate.db", Help: "database: sqlite:PATH or postgres://…", Secret: true,
			read: to(&s.Database, readDatabase)},
		{Key: "media", Default: "file:data/media", Help: "result files: file:DIR or s3://BUCKET?endpoint=…&region=…&path_style=true",
			read: to(&s.Media, readMedia)},
		{Key: "media_url", Help: "address of the media host in result links (default: the public address + /media)",
			read: to(&s.MediaURL, readURL)},
		{Key: "catalog", Local: true, Help: "catalog file applied at start while the database has no catalog", read: to(&s.Catalog, readText)},
		{Key: "admin_token", Help: "bearer token of the operator API (default: the content of the file admin-token beside a SQLite database)",
			Local: true, Secret: true, read: to(&s.AdminToken, readToken)},
		{Key: "secret_key", Secret: true,
			Help: "key that encrypts the keys of providers in the database (default: the file secret-key beside a SQLite database)",
			read: to(&s.SecretKeys, vault.ParseKeys)},
		{Key: "admin_listen", Local: true, Help: "separate address for the operator API and its console",
			read: to(&s.AdminListen, readListen)},
		{Key: "private_networks", Help: "non-public networks (CIDRs) that addresses from users may reach; for development", List: true,
			read: to(&s.PrivateNetworks, readNetworks)},
		{Key: "start_limit", Default: "15m", Help: "how long a job may wait for its start; then it fails and is refunded",
			read: to(&s.StartLimit, readDuration)},
		{Key: "media_retry", Default: "1h", Help: "how long results are kept while the media store is down; then their jobs fail",
			read: to(&s.MediaRetry, readDuration)},
		{Key: "job_retention", Default: "72h", Help: "how long the record of a job is kept after its end",
			read: to(&s.JobRetention, readDuration)},
		{Key: "response_retention", Default: "24h", Help: "how long answers of /v1/responses are stored; 0 stores none",
			read: to(&s.ResponseRetention, readDurationOrZero)},
		{Key: "response_storage", Default: "256MiB", Help: "size of an account's stored answers; the conversations used last stay",
			read: to(&s.ResponseStorage, readStorage)},
		{Key: "media_retention", Default: "1440h", Help: "how long result files are kept after the end of their job",
			read: to(&s.MediaRetention, readDuration)},
		{Key: "delivery_retention", Default: "720h", Help: "how long the log of webhook deliveries is kept",
			read: to(&s.DeliveryRetention, readDuration)},
		{Key: "webhook_timeout", Default: "10s", Help: "timeout of an attempt to deliver an event",
			read: to(&s.WebhookTimeout, readDuration)},
		{Key: "webhook_retries", Default: "1m,5m,30m,2h,6h", Help: "delays between the attempts of a delivery", List: true,
			read: to(&s.WebhookRetries, readDurations)},
		{Key: "max_body", Default: "32MiB", Help: "largest request body", read: to(&s.MaxBody, readSize)},
		{Key: "start_wait", Local: true, Default: "1m", Help: "how long a start waits for a database or bucket that is not available yet",
			read: to(&s.StartWait, readDuration)},
		{Key: "shutdown_delay", Local: true, Help: "how long new requests are still accepted after SIGTERM while /readyz answers 503",
			read: to(&s.ShutdownDelay, readDuration)},
		{Key: "shutdown_grace", Local: true, Default: "30s", Help: "how long running requests may take to finish after SIGTERM",
			read: to(&s.ShutdownGrace, readDuration)},
		{Key: "request_timeout", Default: "15m", Help: "maximum time of a chat request over all lines",
			read: to(&s.RequestTimeout, readDuration)},
		{Key: "picture_wait", Default: "2m", Help: "how long a submission of images may wait for its result; 0 means that none waits",
			read: to(&s.PictureWait, readDurationOrZero)},
		{Key: "count_tokens_per_minute", Default: "300", Help: "token counts per account and minute; 0 means no limit",
			read: to(&s.CountTokensPerMinute, countBetween(0, 1_000_000))},
		{Key: "outage_grace", Default: "30s", Help: "how long running answers wait for an unavailable database before they are cut",
			Local: true, read: to(&s.OutageGrace, readDuration)},
		{Key: "queue_wait", Local: true, Default: "2s", Help: "how long a request may wait for its admission to begin before it gets 503",
			read: to(&s.QueueWait, readDuration)},
		{Key: "lock_timeout", Default: "1s", Help: "how long the ledger waits for a row locked by another node; PostgreSQL, at most 4s",
			Local: true, read: to(&s.LockTimeout, readLockTimeout)},
		{Key: "max_answer", Default: "64MiB", Help: "largest provider answer that is not streamed",
			read: to(&s.MaxAnswer, readSize)},
		{Key: "provider_connections", Local: true, Default: "direct",
			Help: "how HTTP/1.1 is sent to providers: direct, by each request itself, or standard, by goroutines of net/http",
			read: to(&s.ProviderConnections, oneOf("direct", "standard"))},
		{Key: "node_lease", Default: "15s", Help: "a node that has not renewed its lease for this long is dead, and its holds are taken over",
			read: to(&s.NodeLease, readLease)},
		{Key: "request_retention", Default: "2160h", Help: "how long rows of the request log are kept; movements of money stay",
			read: to(&s.RequestRetention, readDuration)},
		{Key: "database_connections", Local: true, Default: "16", Help: "PostgreSQL connections of this node",
			read: to(&s.DatabaseConnections, countBetween(2, 1000))},
		{Key: "key_cache", Local: true, Default: "10000", Help: "API keys that this node caches, about 500 bytes each",
			read: to(&s.KeyCache, countBetween(1, 10_000_000))},
		{Key: "max_connections", Local: true, Help: "concurrent client connections (default: half of the file descriptors of the process)",
			read: to(&s.MaxConnections, countBetween(1, 1_000_000))},
		{Key: "max_connections_per_address", Local: true, Help: "connections per client address (default: half of max_connections)",
			read: to(&s.MaxConnectionsPerAddress, countBetween(1, 1_000_000))},
		{Key: "trusted_proxies", Local: true, Help: "networks (CIDRs) of proxies whose X-Forwarded-For is trusted", List: true,
			read: to(&s.TrustedProxies, readNetworks)},
		{Key: "cors_origins", Help: "origins of web pages that may call /v1 and /native from a browser, or *", List: true,
			read: to(&s.CORSOrigins, readOrigins)},
		{Key: "metrics_listen", Local: true, Help: "separate address that serves /metrics without a token",
			read: to(&s.MetricsListen, readListen)},
		{Key: "expose_line", Local: true, Default: "false", Help: "add the header x-tollgate-line to chat answers, for diagnosis", Switch: true,
			read: to(&s.ExposeLine, readSwitch)},
		{Key: "unknown_fields", Default: "ignore", Help: "undocumented fields of chat requests: ignore drops them, refuse answers 400",
			read: to(&s.RefuseUnknownFields, readUnknownFields)},
		{Key: "alert_url", Help: "address that receives a POST when a line leaves or returns to service", Secret: true,
			read: to(&s.AlertURL, readURL)},
		{Key: "smtp_server", Help: "HOST:PORT of the SMTP server that takes mails; unset means no mail",
			read: to(&s.SMTPServer, readListen)},
		{Key: "smtp_security", Default: "starttls", Help: "encryption of the SMTP connection: starttls, tls, or none on this machine",
			read: to(&s.SMTPSecurity, readSecurity)},
		{Key: "smtp_user", Help: "user name at the SMTP server", read: to(&s.SMTPUser, readText)},
		{Key: "smtp_password", Help: "password at the SMTP server", Secret: true, read: to(&s.SMTPPassword, readText)},
		{Key: "mail_from", Help: "sender's address of mails", read: to(&s.MailFrom, mail.ParseAddress)},
		{Key: "alert_mail", Help: "addresses that get a mail when a line leaves or returns to service", List: true,
			read: to(&s.AlertMail, readAddresses)},
		{Key: "low_balance", Default: "5", Help: "a customer whose balance falls below this amount in US dollars gets a mail; 0 means none",
			read: to(&s.LowBalance, readUSD)},
		{Key: "service_name", Help: "name of this service in the console and in mails (default there: the host of public_url)",
			read: to(&s.ServiceName, readName)},
		{Key: "service_contact", Help: "where customers get help: a mail address or the address of a page",
			read: to(&s.shop.contact, readContact)},
		{Key: "brand_logo", Help: "file with the logo of this service, an SVG or a PNG", read: s.shop.readLogo},
		{Key: "brand_color", Help: "color of links and buttons, such as #1f5fbf", read: to(&s.shop.color, page.ParseColor)},
		{Key: "public_prices", Default: "false", Help: "everybody sees the models and their prices at /console/prices", Switch: true,
			read: to(&s.PublicPrices, readSwitch)},
		{Key: "public_status", Default: "false", Help: "everybody sees the availability of models at /console/status", Switch: true,
			read: to(&s.PublicStatus, readSwitch)},
		{Key: "terms_file", Help: "file with your terms, shown at /console/terms: Markdown if its name ends in .md",
			read: to(&s.legal.Terms, readLegal)},
		{Key: "terms_version", Help: "version of your terms, such as a date; users then accept them, and again when it changes",
			read: to(&s.legal.Version, readName)},
		{Key: "privacy_file", Help: "file with your privacy policy, shown at /console/privacy", read: to(&s.legal.Privacy, readLegal)},
		{Key: "sign_up", Default: "closed", Help: "who may create an account: closed, domains (of sign_up_domains) or open",
			read: to(&s.SignUp, readSignUpMode)},
		{Key: "sign_up_domains", Help: "domains whose addresses may sign up", List: true, read: to(&s.SignUpDomains, readDomains)},
		{Key: "trial_credit", Help: "US dollars for each customer who signs up; unset means none", read: to(&s.Trial.Credit, readAmount)},
		{Key: "trial_daily_budget", Help: "most trial credit of a UTC day, over all customers",
			read: to(&s.Trial.DailyBudget, readAmount)},
		{Key: "challenge_site_key", Help: "site key of Turnstile; the sign-up then checks that people send it",
			read: to(&s.ChallengeSiteKey, readText)},
		{Key: "challenge_secret", Help: "secret of Turnstile", Secret: true, read: to(&s.ChallengeSecret, readText)},
		{Key: "challenge_script_url", Default: turnstileScript, Help: "address of the script of a service compatible with Turnstile",
			read: to(&s.ChallengeScriptURL, readURL)},
		{Key: "challenge_verify_url", Default: turnstileVerify, Help: "address that checks its answers",
			read: to(&s.ChallengeVerifyURL, readURL)},
		{Key: "sign_in_with", Help: "identity providers with which people sign in: a YAML list, see Sign-in with other providers",
			YAML: true, Secret: true, read: to(&s.SignInWith, readProviders)},
		{Key: "otlp_endpoint", Local: true, Help: "base address of an OpenTelemetry collector for traces (OTLP over HTTP)",
			read: to(&s.OTLPEndpoint, readPublicURL)},
		{Key: "otlp_headers", Local: true, Help: "headers for the collector: NAME=VALUE, separated by commas", Secret: true,
			read: to(&s.OTLPHeaders, readHeaders)},
		{Key: "stripe_key", Help: "API key of Stripe, sk_… or rk_…; customers then top up by Stripe Checkout", Secret: true,
			read: to(&s.StripeKey, checked(stripe.CheckKey))},
		{Key: "stripe_webhook_secret", Help: "signing secret of Stripe's webhook endpoint, whsec_…", Secret: true,
			read: to(&s.StripeWebhookSecret, checked(stripe.CheckSecret))},
		{Key: "stripe_url", Default: stripe.DefaultURL, Help: "base address of Stripe's API", read: to(&s.StripeURL, readPublicURL)},
		{Key: "stripe_tax", Default: "false", Help: "Stripe Tax adds a tax to payments", Switch: true, read: to(&s.StripeTax, readSwitch)},
		{Key: "epay_url", Help: "base address of an EPay site; customers then top up by Alipay, WeChat Pay and others",
			read: to(&s.EPayURL, readPublicURL)},
		{Key: "epay_pid", Help: "your number (pid) at the EPay site", read: to(&s.EPayPID, checked(epay.CheckPID))},
		{Key: "epay_key", Help: "your key at the EPay site", Secret: true, read: to(&s.EPayKey, checked(epay.CheckKey))},
		{Key: "epay_methods", Default: "alipay,wxpay", Help: "ways to pay at the EPay site: its names, or NAME=TITLE", List: true,
			read: to(&s.EPayMethods, readMethods)},
		{Key: "epay_refunds", Default: "false", Help: "the EPay site pays whole payments back by a call and reports it", Switch: true,
			read: to(&s.EPayRefunds, readSwitch)},
		{Key: "topup_currency", Default: "usd", Help: "currency of payments", read: to(&s.Topup.Currency, readText)},
		{Key: "topup_rate", Help: "US dollars that one unit of topup_currency is worth (default: 1 for usd)",
			read: to(&s.Topup.Rate, readText)},
		{Key: "topup_amounts", Default: "10,20,50,100", Help: "amounts that customers choose from", List: true,
			read: to(&s.Topup.Amounts, readList)},
		{Key: "topup_minimum", Default: "5", Help: "smallest payment", read: to(&s.Topup.Minimum, readText)},
		{Key: "topup_maximum", Default: "1000", Help: "largest payment", read: to(&s.Topup.Maximum, readText)},
		{Key: "topup_bonus", Help: "additional credit: FROM=PERCENT, such as 50=5,100=10", List: true,
			read: to(&s.Topup.Tiers, readList)},
		{Key: "topup_automatic_maximum", Help: "largest monthly maximum of automatic top-ups with a saved card; unset means none",
			read: to(&s.Topup.Automatic, readText)},
		{Key: "topup_dispute_disables", Default: "false", Help: "a disputed payment disables its account", Switch: true,
			read: to(&s.TopupDisputeDisables, readSwitch)},
		{Key: "invoice_seller_name", Help: "your name on invoices; customers' payments then get invoices",
			read: to(&s.Invoice.Seller.Name, readText)},
		{Key: "invoice_seller_address", Help: "lines of your address on invoices", List: true, read: to(&s.Invoice.Seller.Address, readList)},
		{Key: "invoice_seller_country", Help: "two letters of your country, such as DE", read: to(&s.Invoice.Seller.Country, readText)},
		{Key: "invoice_seller_tax_id", Help: "your tax id on invoices", read: to(&s.Invoice.Seller.TaxID, readText)},
		{Key: "invoice_note", Help: "text at the end of each invoice", read: to(&s.Invoice.Note, readText)},
		{Key: "invoice_tax_name", Default: "VAT", Help: "name of the tax on invoices", read: to(&s.Invoice.TaxName, readText)},
		{Key: "invoice_tax_rate", Default: "0", Help: "percentage of tax contained in payments without a tax of Stripe Tax",
			read: to(&s.Invoice.TaxRate, invoice.ParseTaxRate)},
		{Key: "invoice_reverse_charge", Help: "note on invoices without tax to customers with a tax id in other countries; unset means none",
			read: to(&s.Invoice.ReverseCharge, readText)},
		{Key: "invoice_series", Default: "INVOICE", Help: "beginning of the numbers of invoices", read: to(&s.Invoice.InvoiceSeries, readText)},
		{Key: "invoice_credit_series", Default: "CREDIT", Help: "beginning of the numbers of credit notes",
			read: to(&s.Invoice.CreditSeries, readText)},
		{Key: "no_demo", Local: true, Default: "false", Help: "omit demo account and sandbox catalog from a first start", Switch: true,
			read: to(&s.NoDemo, readSwitch)},
		{Key: "log_level", Local: true, Default: "info", Help: "lowest level of log lines: debug, info, warn or error",
			read: to(&s.LogLevel, readLevel)},
		{Key: "log_format", Local: true, Default: "text", Help: "format of log lines: text or json",
			read: to(&s.LogFormat, oneOf("text", "json"))},
	}
}

// settingOf finds the description of a key.
func settingOf(key string) (Setting, bool) {
	all := AllSettings()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return all[i], true
}
