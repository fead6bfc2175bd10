package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"tollgate/internal/account"
	"tollgate/internal/catalog/secret"
	"tollgate/internal/identity"
)

// identityTimeout bounds one exchange with an identity provider.
const identityTimeout = 10 * time.Second

// Bounds of identity providers.
const (
	maxProviders     = 20
	maxProviderTitle = 40 // characters
)

// providerName matches the name of an identity provider. The name is part of addresses.
var providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// readProviders reads the identity providers in sign_in_with. No error has a value of a secret.
func readProviders(text string) ([]identity.Config, error) {
	var all []identity.Config
	if err := yaml.UnmarshalWithOptions([]byte(text), &all, yaml.Strict()); err != nil {
		if e, ok := errors.AsType[yaml.Error](err); ok {
			return nil, fmt.Errorf("must be a YAML list of providers: line %d: %s", e.GetToken().Position.Line, oneLine(e.GetMessage()))
		}
		return nil, errors.New("must be a YAML list of providers, each with name, issuer, client_id and client_secret")
	}
	if len(all) > maxProviders {
		return nil, fmt.Errorf("must not have more than %d providers", maxProviders)
	}
	names, issuers := map[string]bool{}, map[string]bool{}
	for i := range all {
		c := &all[i]
		if !providerName.MatchString(c.Name) {
			return nil, fmt.Errorf("provider %d: name must be 1 to 32 lower-case letters, digits and hyphens", i+1)
		}
		if err := completeProvider(c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if names[c.Name] || issuers[c.Issuer] {
			return nil, fmt.Errorf("%s: name and issuer must differ from those of the other providers", c.Name)
		}
		names[c.Name], issuers[c.Issuer] = true, true
	}
	return all, nil
}

// completeProvider checks a provider and fills in its defaults.
func completeProvider(c *identity.Config) error {
	if err := completeKind(c); err != nil {
		return err
	}
	if c.Title = strings.TrimSpace(c.Title); c.Title == "" {
		c.Title = strings.ToUpper(c.Name[:1]) + c.Name[1:]
	}
	if c.For == "" {
		c.For = identity.Customers
	}
	if c.EmailTrust == "" {
		c.EmailTrust = identity.ByClaim
	}
	claim, value, isClaim := strings.Cut(c.SecondFactor, "=")
	switch {
	case utf8.RuneCountInString(c.Title) > maxProviderTitle || strings.ContainsFunc(c.Title, unicode.IsControl):
		return fmt.Errorf("title must have at most %d characters", maxProviderTitle)
	case c.ClientID == "":
		return errors.New("client_id is required: the provider shows it where you register this service")
	case c.ClientSecret == "":
		return errors.New("client_secret is required: ${file:PATH} or ${VARIABLE}")
	case !slices.Contains([]identity.Audience{identity.Customers, identity.Operators, identity.Both}, c.For):
		return errors.New("for must be customers, operators or both")
	case !slices.Contains([]identity.EmailTrust{identity.ByClaim, identity.Always, identity.Never}, c.EmailTrust):
		return errors.New("email_verified must be claim, always or never")
	case c.SecondFactor != "" && c.SecondFactor != string(identity.Always) && (!isClaim || claim == "" || value == ""):
		return errors.New("second_factor must be always, or CLAIM=VALUE such as amr=mfa")
	}
	var err error
	if c.Domains, err = readDomains(strings.Join(c.Domains, ",")); err != nil {
		return fmt.Errorf("domains: %w", err)
	}
	if err := completeRoles(c); err != nil {
		return err
	}
	return resolveSecret(c)
}

// completeKind checks the protocol and the address of a provider, and fills in their defaults.
func completeKind(c *identity.Config) error {
	if c.Kind == "" {
		c.Kind = identity.OIDC
	}
	if c.Kind == identity.GitHub && c.Issuer == "" {
		c.Issuer = identity.GitHubURL
	}
	u, err := url.Parse(c.Issuer)
	switch {
	case c.Kind != identity.OIDC && c.Kind != identity.GitHub:
		return errors.New("kind must be oidc or github")
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return errors.New("issuer must be the https:// address of the provider, as its documents spell it")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Host) && !isLoopback(u.Host+":80")):
		return errors.New("issuer must be an https:// address: with http, anybody on the way could sign in as anybody")
	case u.Host == "login.microsoftonline.com" && slices.Contains([]string{"common", "organizations", "consumers"},
		strings.Split(u.Path+"/", "/")[1]):
		return errors.New("issuer must name your tenant in place of common, organizations or consumers: " +
			"those accept people of every tenant")
	case c.Kind == identity.GitHub && (c.HostedDomain != "" || c.Roles.Claim != "" || strings.Contains(c.SecondFactor, "=")):
		return errors.New("GitHub has no claims, so hosted_domain, operators and a claim in second_factor cannot be set")
	}
	if c.Kind == identity.GitHub {
		c.Issuer = strings.TrimRight(c.Issuer, "/")
	}
	return nil
}

// completeRoles checks the roles by a claim, and sets their order.
func completeRoles(c *identity.Config) error {
	if c.Roles.Claim == "" && len(c.Roles.Roles) == 0 {
		return nil
	}
	c.Roles.Order = nil
	for _, role := range account.Roles() {
		c.Roles.Order = append(c.Roles.Order, string(role))
	}
	switch {
	case c.Roles.Claim == "" || len(c.Roles.Roles) == 0:
		return errors.New("operators needs both claim and roles")
	case !c.ForOperators():
		return errors.New("operators needs for: operators or both")
	}
	for value, role := range c.Roles.Roles {
		if value == "" || !slices.Contains(c.Roles.Order, role) {
			return fmt.Errorf("operators: the role of %q must be one of %s", value, strings.Join(c.Roles.Order, ", "))
		}
	}
	return nil
}

// resolveSecret replaces a reference in client_secret by its value.
func resolveSecret(c *identity.Config) error {
	if !secret.IsReference(c.ClientSecret) {
		return nil
	}
	value, reason := secret.Resolve(strings.TrimSuffix(strings.TrimPrefix(c.ClientSecret, "${"), "}"), os.LookupEnv)
	if reason != "" {
		return fmt.Errorf("client_secret: %s", reason)
	}
	c.ClientSecret = value
	return nil
}

// identityProviders returns the identity providers in the settings.
func (r *rooms) identityProviders() (all []*identity.IDProvider) {
	for _, c := range r.settings.SignInWith {
		all = append(all, identity.New(identity.Options{Config: c, HTTP: r.guard.Client(identityTimeout)}))
	}
	return all
}

// checkSignInWith checks sign_in_with with the other settings.
func checkSignInWith(s *Settings) error {
	for _, c := range s.SignInWith {
		if c.ForOperators() && s.AdminListen != "" {
			return &SettingError{"sign_in_with", fmt.Errorf("%s: for: %s needs the operator's pages at public_url, so it does not work with "+
				"admin_listen", c.Name, c.For)}
		}
	}
	return nil
}
