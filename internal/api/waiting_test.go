package api_test

import (
	"net/http"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestSubmissionsThatWait checks which submissions wait, how long at most, and that a submission
// whose job does not end in time gets the 202. The node stops, so that no wait takes time.
func TestSubmissionsThatWait(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newServer(t, db, func(o *api.Options) {
			o.PictureWait = 90 * time.Second
			o.Jobs.EndWaits()
		})
		_, plain := d.key(account.KeySettings{})
		_, waits := d.key(account.KeySettings{WaitForPictures: true})
		base64 := `{"model":"easel-1","prompt":"a hat","response_format":"b64_json"}`
		for _, test := range []struct {
			path, body, secret, prefer string
			status                     int
			applied                    string // Preference-Applied
		}{
			{generations, hat, plain, "", 202, ""},
			{generations, hat, plain, "wait=30", 202, "wait=30"},
			{generations, hat, plain, "wait=600", 202, "wait=90"},
			{generations, hat, plain, "wait=soon", 202, ""},
			{generations, hat, waits, "", 202, ""},
			{generations, base64, plain, "", 400, ""},
			{generations, base64, plain, "wait=0", 400, ""},
			{generations, base64, plain, "wait=30", 202, "wait=30"},
			{generations, base64, waits, "", 202, ""},
			{generations, base64, waits, "respond-async", 400, ""},
			{generations, `{"model":"easel-1","prompt":"a hat","response_format":"url"}`, plain, "", 202, ""},
			{generations, `{"model":"easel-1","prompt":"a hat","response_format":"png"}`, waits, "", 400, ""},
			{generations, `{"model":"easel-1","prompt":"a hat","response_format":7}`, waits, "", 400, ""},
			{videos, `{"model":"reel-1","prompt":"a hat"}`, waits, "wait=30", 202, ""},
		} {
			headers := as(test.secret)
			if test.prefer != "" {
				headers = append(headers, "Prefer", test.prefer)
			}
			got := d.send("POST", test.path, test.body, headers...)
			if got.status != test.status || got.header.Get("Preference-Applied") != test.applied {
				t.Errorf("%s with Prefer %q: %d, applied %q, want %d and %q: %s", test.body, test.prefer, got.status,
					got.header.Get("Preference-Applied"), test.status, test.applied, got.body)
			}
			if test.status == 400 {
				if param := got.refused(t, 400, "invalid_request"); param != "response_format" {
					t.Errorf("%s: param %q, want response_format", test.body, param)
				}
				continue
			}
			if got.header.Get("Location") == "" || got.header.Get("Retry-After") == "" {
				t.Errorf("%s: Location %q, Retry-After %q", test.body, got.header.Get("Location"), got.header.Get("Retry-After"))
			}
		}
	})
}

// TestNoSubmissionWaits checks the setting 0: the wait is refused only where the response would
// differ.
func TestNoSubmissionWaits(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{WaitForPictures: true})
	if got := d.send("POST", generations, hat, as(secret)...); got.status != http.StatusAccepted {
		t.Errorf("%d, want 202: %s", got.status, got.body)
	}
	body := `{"model":"easel-1","prompt":"a hat","response_format":"b64_json"}`
	if param := d.send("POST", generations, body, append(as(secret), "Prefer", "wait=9")...).refused(t, 400, "invalid_request"); param !=
		"response_format" {
		t.Errorf("param %q, want response_format", param)
	}
}
