package show

import (
	"testing"

	"tollgate/internal/console/ui"
	"tollgate/internal/mail"
	"tollgate/internal/topup"
)

// TestProblemText checks that the texts of problems are translated, and that values and other texts stay as they are.
func TestProblemText(t *testing.T) {
	chinese, err := ui.ReadTexts(mail.Chinese)
	if err != nil {
		t.Fatal(err)
	}
	for detail, want := range map[string]string{
		"the payment has no id":                       "付款没有编号",
		"the payment has no identity":                 "the payment has no identity",
		"paid was 5.00 CNY, the top-up is for 50 CNY": "实付 5.00 CNY，而充值金额为 50 CNY",
		"the payment could not be started: no: %s":    "无法发起付款：no: %s",
		"":                         "",
		"paid was , the top-up is": "paid was , the top-up is",
		"the payment is in eur, the top-up in cny": "付款货币为 eur，充值货币为 cny",
		"the payment could not be started":         "the payment could not be started",
		"the payment names the top-up \"topup_1\"": "付款指向充值 \"topup_1\"",
	} {
		words := ProblemText(topup.Problem{Detail: detail})
		if got := words.String(); got != detail {
			t.Errorf("in English: got %q, want %q", got, detail)
		}
		if got := chinese.Say(words); got != want {
			t.Errorf("%q in Chinese: got %q, want %q", detail, got, want)
		}
	}
}
