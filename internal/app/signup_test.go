package app

import "testing"

// TestSignUpSettings checks which settings of sign-up fit together, and that each error names the
// setting to change and says how.
func TestSignUpSettings(t *testing.T) {
	t.Parallel()
	const open = "smtp_server: smtp.example.com:587\nsign_up: open\n"
	checkSettings(t, map[string]settingsCase{
		"off":                   {"", ""},
		"open":                  {open, ""},
		"domains":               {"smtp_server: a:25\nsign_up: domains\nsign_up_domains: [Example.com, b.example]", ""},
		"trial credit":          {open + "trial_credit: 0.5\ntrial_daily_budget: 10", ""},
		"a challenge":           {open + "challenge_site_key: a\nchallenge_secret: b", ""},
		"unknown mode":          {"sign_up: yes", "must be one of closed, domains, open"},
		"no mail":               {"sign_up: open", "sign_up: needs smtp_server"},
		"no domains":            {"smtp_server: a:25\nsign_up: domains", "sign_up: domains needs sign_up_domains"},
		"an invalid domain":     {"sign_up_domains: [a@b]", "must be a domain such as example.com"},
		"domains in vain":       {open + "sign_up_domains: [example.com]", "sign_up_domains: needs sign_up: domains"},
		"trial without":         {"trial_credit: 1", "trial_credit: needs sign_up"},
		"no budget":             {open + "trial_credit: 1", "trial_credit: needs trial_daily_budget"},
		"a small budget":        {open + "trial_credit: 1\ntrial_daily_budget: 0.99", "needs trial_daily_budget of at least trial_credit"},
		"a budget alone":        {open + "trial_daily_budget: 1", "trial_daily_budget: needs trial_credit"},
		"a negative credit":     {open + "trial_credit: -1", "must be an amount of US dollars above 0"},
		"a secret alone":        {open + "challenge_secret: b", "challenge_secret: needs challenge_site_key"},
		"no secret":             {open + "challenge_site_key: a", "challenge_site_key: needs challenge_secret"},
		"a challenge of nobody": {"challenge_site_key: a\nchallenge_secret: b", "challenge_site_key: needs sign_up"},
	}, checkSignUp)
}
