package admin

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"tollgate/internal/account"
	"tollgate/internal/fault"
)

// FuzzDecode checks that every body is either rejected with a 400, or decoded to the same values as
// by encoding/json.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":"a","rpm":5}`, `{"rpm":null,"allowed_ips":["10.0.0.0/8"]}`, `{"name":"a","n\u0061me":"b"}`,
		`[]`, `{"daily_budget_usd":"1e3"}`, `{"total_limit_usd":0.1}`, `{"a":{"a":1}}`, "{\"\xff\":1}", `{"name":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := parseObject(body)
		if err == nil {
			var settings account.KeySettings
			err = o.decode(keyFields(&settings)...)
			var plain struct {
				Name string
				RPM  *int64
			}
			if err == nil && json.Unmarshal(body, &plain) != nil {
				t.Fatalf("decode accepts %q, which encoding/json rejects", body)
			}
			if err == nil && (plain.Name != settings.Name || (plain.RPM == nil) != (settings.RPM == nil)) {
				t.Fatalf("%q was decoded to %+v, want %+v", body, settings, plain)
			}
		}
		var fe *fault.Error
		if err != nil && (!errors.As(err, &fe) || fe.Status() != 400 || !utf8.ValidString(fe.Message()) || !utf8.ValidString(fe.Param) ||
			len(fe.Message()) > 2000) {
			t.Fatalf("%q was rejected with %v, want a short 400 in UTF-8", body, err)
		}
		if err == nil && !utf8.Valid(body) {
			t.Fatalf("%q is not UTF-8, but was accepted", body)
		}
	})
}
