package epay

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakepayment"
	"tollgate/internal/topup"
)

// TestSign signs in the order of the names, without parameters that are empty.
func TestSign(t *testing.T) {
	t.Parallel()
	q := url.Values{"type": {"alipay"}, "type2": {"x"}, "pid": {"1001"}, "param": {""}, "money": {"1.00"}, "sign": {"?"}, "sign_type": {"MD5"}}
	const want = "25bfd749c2c5a9fe40c70710c6a3da76" // md5 of money=1.00&pid=1001&type=alipay&type2=xKEY
	if got := sign(q, "KEY"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSettings checks pids, keys and ways to pay.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, pid := range []string{"", "1 2", "1&2", strings.Repeat("1", 65)} {
		if CheckPID(pid) == nil {
			t.Errorf("the pid %q: got no error, want one", pid)
		}
	}
	for _, key := range []string{"", "short", "with a space in the key"} {
		if CheckKey(key) == nil {
			t.Errorf("the key %q: got no error, want one", key)
		}
	}
	if CheckPID(fakepayment.EPayPID) != nil || CheckKey(fakepayment.EPayKey) != nil {
		t.Error("a valid pid and key: got an error, want none")
	}
	for _, texts := range [][]string{nil, {""}, {"alipay", "alipay"}, {"a/b=C"}, {"douyin"}, {"douyin="}} {
		if got, err := ParseMethods(texts); err == nil {
			t.Errorf("the ways to pay %q: got %v, want an error", texts, got)
		}
	}
	got, err := ParseMethods([]string{"alipay=支付宝", "wxpay"})
	if err != nil || len(got) != 2 || got[0].Title != "支付宝" || got[1].Title != "WeChat Pay" {
		t.Errorf("got %v, %v; want 支付宝 and WeChat Pay", got, err)
	}
}

// TestAnswers reads answers of api.php: numbers as texts, unknown orders, failures, and answers that are
// too large or no JSON.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, want string // want is a part of the error, or the state
	}{
		{`{"code":1,"trade_no":"7","out_trade_no":"topup_1","money":"1.00","status":"1"}`, "paid"},
		{`{"code":"1","trade_no":7,"out_trade_no":"topup_1","money":1.5,"status":1,"pid":1001}`, "paid"},
		{`{"code":1,"trade_no":7,"out_trade_no":"topup_1","money":1,"status":0,"msg":"x"}`, "missing"},
		{`{"code":1,"trade_no":7,"out_trade_no":"topup_1","money":1,"status":3}`, "missing"},
		{`{"code":-1,"msg":"none"}`, "missing"},
		{`{"code":-3,"msg":"wrong key"}`, "code -3: wrong key"},
		{`{"code":1,"out_trade_no":"topup_1","money":"1.001","status":1}`, "at most 2 decimals"},
		{`{"code":1,"out_trade_no":"topup_1","money":"-1","status":1}`, "must be an amount"},
		{`{"code":1,"out_trade_no":"topup_1","money":"1e2","status":1}`, "must be an amount"},
		{`{"code":1,"out_trade_no":"topup_1","money":"1","status":1,"pid":1002}`, "belongs to the pid"},
		{`{"code":1,"status":true}`, "not valid"},
		{`<html>`, "not valid"},
		{`{"code":1,"msg":"` + strings.Repeat("x", maxAnswer) + `"}`, "larger than"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.body)) }))
		s := New(Options{URL: server.URL, PID: fakepayment.EPayPID, Key: fakepayment.EPayKey, HTTP: http.DefaultClient})
		p, err := s.Query(t.Context(), topup.Topup{ID: "topup_1"})
		got := string(p.State)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%.80s: got %q, want %q", c.body, got, c.want)
		}
		server.Close()
	}
}

// FuzzSignature checks that no other parameters than the signed ones are accepted.
func FuzzSignature(f *testing.F) {
	signed := fakepayment.SignEPay(url.Values{"pid": {fakepayment.EPayPID}, "trade_no": {"7"}, "out_trade_no": {"topup_1"}, "type": {"alipay"},
		"name": {"API credit"}, "money": {"1.00"}, "trade_status": {"TRADE_SUCCESS"}}, fakepayment.EPayKey)
	for _, query := range []string{signed.Encode(), "", "pid=1001", signed.Encode() + "&param=x", signed.Encode() + "&param=", "%zz",
		"a;b", "sign=&pid=1001",
		strings.Replace(signed.Encode(), "&name=", "%26name=", 1), strings.Replace(signed.Encode(), "money=1.00", "money=1.000", 1)} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		switch err := checkSignature(q, fakepayment.EPayPID, fakepayment.EPayKey); {
		case err != nil && !errors.Is(err, topup.ErrForged):
			t.Errorf("%q: got %v, want ErrForged", query, err)
		case err == nil:
			for name := range signed {
				if q.Get(name) != signed.Get(name) && name != "sign_type" && name != "sign" {
					t.Errorf("%q: got no error, want one, because %s was changed", query, name)
				}
			}
		}
	})
}
