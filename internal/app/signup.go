package app

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/money"
	"tollgate/internal/operator"
)

// Addresses of Cloudflare Turnstile.
const (
	turnstileScript = "https://challenges.cloudflare.com/turnstile/v0/api.js"
	turnstileVerify = "https://challenges.cloudflare.com/turnstile/v0/siteverify"
)

// challengeTimeout bounds one exchange with the challenge service.
const challengeTimeout = 10 * time.Second

// readSignUpMode reads who may sign up.
func readSignUpMode(text string) (account.SignUpMode, error) {
	word, err := oneOf(string(account.SignUpClosed), string(account.SignUpDomains), string(account.SignUpOpen))(text)
	return account.SignUpMode(word), err
}

// readDomains reads the domains of addresses.
func readDomains(text string) ([]string, error) {
	domains := splitList(strings.ToLower(text))
	for _, d := range domains {
		if _, err := account.ParseEmail("name@" + d); err != nil {
			return nil, &entryError{fmt.Errorf("%q must be a domain such as example.com", d)}
		}
	}
	return domains, nil
}

// readAmount reads an amount of US dollars above zero.
func readAmount(text string) (money.Amount, error) {
	amount, err := money.Parse(text)
	if err != nil || amount <= 0 || amount > money.Max {
		return 0, errors.New("must be an amount of US dollars above 0, such as 5 or 0.50")
	}
	return amount, nil
}

// checkSignUp checks the settings of sign-up together.
func checkSignUp(s *Settings) error {
	wrong := func(key, format string, args ...any) error { return &SettingError{key, fmt.Errorf(format, args...)} }
	rules := account.SignUpRules{Mode: s.SignUp, Domains: s.SignUpDomains}
	switch {
	case rules.On() && s.SMTPServer == "":
		return wrong("sign_up", "needs smtp_server, because a sign-up is verified by mail")
	case s.SignUp == account.SignUpDomains && len(s.SignUpDomains) == 0:
		return wrong("sign_up", "domains needs sign_up_domains: list the domains whose addresses may sign up")
	case s.SignUp != account.SignUpDomains && len(s.SignUpDomains) > 0:
		return wrong("sign_up_domains", "needs sign_up: domains")
	case s.Trial.Credit > 0 && !rules.On():
		return wrong("trial_credit", "needs sign_up: open or domains")
	case s.Trial.Credit > 0 && s.Trial.DailyBudget < s.Trial.Credit:
		return wrong("trial_credit", "needs trial_daily_budget of at least trial_credit: it bounds what a day of sign-ups can cost you")
	case s.Trial.Credit == 0 && s.Trial.DailyBudget > 0:
		return wrong("trial_daily_budget", "needs trial_credit")
	case s.ChallengeSiteKey == "" && s.ChallengeSecret != "":
		return wrong("challenge_secret", "needs challenge_site_key")
	case s.ChallengeSiteKey != "" && s.ChallengeSecret == "":
		return wrong("challenge_site_key", "needs challenge_secret: without it, no answer can be checked")
	case s.ChallengeSiteKey != "" && !rules.On():
		return wrong("challenge_site_key", "needs sign_up: open or domains")
	}
	return nil
}

func (s *Settings) signUps() operator.SignUps {
	return operator.SignUps{Rules: account.SignUpRules{Mode: s.SignUp, Domains: s.SignUpDomains}, Trial: s.Trial}
}

// challenge returns the challenge of sign-ups, or nil if none is set.
func (r *rooms) challenge() *page.Challenge {
	s := r.settings
	if s.ChallengeSiteKey == "" {
		return nil
	}
	return &page.Challenge{SiteKey: s.ChallengeSiteKey, Secret: s.ChallengeSecret, ScriptURL: s.ChallengeScriptURL,
		VerifyURL: s.ChallengeVerifyURL, HTTP: r.guard.Client(challengeTimeout)}
}
