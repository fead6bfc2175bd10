package show

import (
	"testing"

	"tollgate/internal/console/ui"
	"tollgate/internal/mail"
)

// TestJobMessage checks that the sentences of a failed job are translated, and that a provider's words
// and all other messages stay as they are.
func TestJobMessage(t *testing.T) {
	chinese, err := ui.ReadTexts(mail.Chinese)
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		"The job could not be done. Submit it again later. You were not charged.": "任务未能完成。请稍后重新提交。您没有被扣费。",
		"The job could not be done. Submit it again later. The provider says: no seats. You were not charged.": "任务未能完成。请稍后重新提交。" +
			"供应商的说明：no seats.您没有被扣费。",
		"The model is gone. You were not charged.": "The model is gone. You were not charged.",
		"The job could not be done. Nobody knows.": "The job could not be done. Nobody knows.",
	} {
		if got := JobMessage(message).String(); got != message {
			t.Errorf("in English: got %q, want %q", got, message)
		}
		if got := chinese.Say(JobMessage(message)); got != want {
			t.Errorf("%q in Chinese: got %q, want %q", message, got, want)
		}
	}
}
