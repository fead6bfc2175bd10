package admin

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"tollgate/internal/account"
	"tollgate/internal/fault"
)

// FuzzDecode checks that every body is either refused with a fault or decoded as encoding/json
// would decode it.
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
				t.Fatalf("%q was decoded, although it is not a valid body", body)
			}
			if err == nil && (plain.Name != settings.Name || (plain.RPM == nil) != (settings.RPM == nil)) {
				t.Fatalf("%q was decoded to %+v", body, settings)
			}
		}
		var fe *fault.Error
		if err != nil && (!errors.As(err, &fe) || fe.Status() != 400 || !utf8.ValidString(fe.Message()) || !utf8.ValidString(fe.Param) ||
			len(fe.Message()) > 2000) {
			t.Fatalf("%q was refused with %v", body, err)
		}
		if err == nil && !utf8.Valid(body) {
			t.Fatalf("%q was accepted", body)
		}
	})
}
