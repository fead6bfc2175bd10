// Package contract owns the test of the OpenAPI documents against a running gateway. Invariants: each
// operation succeeds at least once on both databases; the usual errors are provoked; every answer
// matches its schema.
package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/admin"
	"tollgate/internal/api"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestContractsShowTheRoutes compares the operations of the contracts with the served routes in
// both directions.
func TestContractsShowTheRoutes(t *testing.T) {
	t.Parallel()
	served := slices.Concat(api.Routes(), admin.Routes(), []string{"GET /healthz", "GET /readyz", "GET /metrics", "GET /media/{id}"})
	documented := newContractClient(t, nil).checker.Operations()
	for _, route := range served {
		if !slices.Contains(documented, route) {
			t.Errorf("%s is in no contract (internal/contract)", route)
		}
	}
	for _, route := range documented {
		if !slices.Contains(served, route) {
			t.Errorf("%s is in a contract, but has no route", route)
		}
	}
}

// TestAnswersKeepTheContracts calls every operation and checks the answers.
func TestAnswersKeepTheContracts(t *testing.T) {
	t.Parallel()
	binary := scene.Binary(t)
	storetest.EachURL(t, func(t *testing.T, database string) {
		v := newContractClient(t, scene.Start(t, binary, map[string]string{"database": database, "no_demo": "false",
			"secret_key":       "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",
			"private_networks": "127.0.0.1/32"}))
		account, key := v.process.Account(10, nil)
		v.key = key
		v.process.Admin("POST", "/accounts/"+account+"/credits", map[string]any{"usd": 1}, nil)
		v.health()
		v.chat()
		v.refusals()
		v.media()
		v.reads()
		v.accounts(account)
		v.webhooks(account)
		v.codes()
		v.mails(binary)
		v.invoices(binary)
		v.gateway()
		for _, operation := range v.checker.MissingOperations() {
			t.Errorf("%s: no successful answer was checked against the contract", operation)
		}
	})
}

func (v *contractClient) health() {
	v.ask(200, "GET", "/healthz", "")
	v.ask(200, "GET", "/readyz", "")
	v.ask(200, "HEAD", "/readyz", "")
	v.ask(200, "GET", "/metrics", "")
	v.ask(401, "GET", "/metrics", "", "Authorization", "Bearer wrong")
	v.ask(405, "POST", "/metrics", "")
}

// chat sends requests in each form, streamed and not.
func (v *contractClient) chat() {
	for _, stream := range []string{"false", "true"} {
		v.ask(200, "POST", "/v1/chat/completions", `{"model":"sandbox-chat","messages":[{"role":"user","content":"hi"}],"max_tokens":20,`+
			`"x_y":1,"stream_options":{"include_usage":true},"stream":`+stream+`}`)
		v.ask(200, "POST", "/v1/responses", `{"model":"sandbox-chat","input":"hi","max_output_tokens":20,"stream":`+stream+`}`)
		v.ask(200, "POST", "/native/v1/messages", `{"model":"sandbox-messages","max_tokens":20,"messages":[{"role":"user",`+
			`"content":"hi"}],"stream":`+stream+`}`, "x-api-key", v.key)
	}
	for _, family := range []string{"/v1beta", "/v1"} {
		for _, method := range []string{"generateContent", "streamGenerateContent", "streamGenerateContent?alt=sse", "countTokens"} {
			v.ask(200, "POST", family+"/models/sandbox-chat:"+method, `{"contents":[{"parts":[{"text":"hi"}]}]}`)
		}
	}
	stored, _ := v.ask(200, "POST", "/v1/responses", `{"model":"sandbox-chat","input":"hi"}`)["id"].(string)
	v.ask(200, "POST", "/v1/responses", `{"model":"sandbox-chat","input":"on","previous_response_id":"`+stored+`"}`)
	v.ask(200, "POST", "/v1/responses/input_tokens", `{"model":"sandbox-chat","input":"on","previous_response_id":"`+stored+`"}`)
	v.ask(400, "POST", "/v1/responses/input_tokens", `{"model":"sandbox-chat","input":5}`)
	v.ask(200, "GET", "/v1/responses/"+stored, "")
	v.ask(400, "GET", "/v1/responses/"+stored+"?stream=true", "")
	v.ask(200, "GET", "/v1/responses/"+stored+"/input_items?order=asc", "")
	v.ask(400, "GET", "/v1/responses/"+stored+"/input_items?limit=0", "")
	v.ask(200, "DELETE", "/v1/responses/"+stored, "")
	v.ask(404, "DELETE", "/v1/responses/"+stored, "")
	v.ask(404, "GET", "/v1/responses/"+stored, "")
	v.ask(404, "GET", "/v1/responses/"+stored+"/input_items", "")
	v.ask(200, "POST", "/v1/embeddings", `{"model":"sandbox-embedding","input":["one","two"],"dimensions":16,"x_y":1}`)
	v.ask(200, "POST", "/v1/embeddings", `{"model":"sandbox-embedding","input":[1,2,3],"encoding_format":"base64"}`)
	v.ask(400, "POST", "/v1/embeddings", `{"model":"sandbox-embedding","input":["one",""]}`)
	v.ask(400, "POST", "/v1/embeddings", `{"model":"sandbox-chat","input":"one"}`)
	v.ask(200, "POST", "/v1/rerank",
		`{"model":"sandbox-rerank","query":"one","documents":["one",{"text":"two"}],"return_documents":true,"x_y":1}`)
	v.ask(200, "POST", "/v2/rerank", `{"model":"sandbox-rerank","query":"one","documents":["one","two"],"top_n":1}`)
	v.ask(400, "POST", "/v1/rerank", `{"model":"sandbox-rerank","query":"one","documents":[]}`)
	v.ask(400, "POST", "/v2/rerank", `{"model":"sandbox-embedding","query":"one","documents":["one"]}`)
	v.ask(200, "POST", "/v1/moderations", `{"input":["one","violence"],"x_y":1}`)
	v.ask(200, "POST", "/v1/moderations", `{"model":"sandbox-moderation","input":[{"type":"text","text":"one"},`+
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}`)
	v.ask(400, "POST", "/v1/moderations", `{"model":"sandbox-moderation","input":[]}`)
	v.ask(200, "POST", "/v1/audio/speech", `{"model":"sandbox-speech","voice":"any","input":"one","x_y":1}`)
	v.ask(200, "POST", "/v1/audio/speech", `{"model":"sandbox-speech","voice":"any","input":"one","stream_format":"sse"}`)
	v.ask(400, "POST", "/v1/audio/speech", `{"model":"sandbox-speech","input":"one"}`)
	const form, formType = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsandbox-transcription\r\n%s--b\r\n" +
		"Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nsound\r\n--b--\r\n", "multipart/form-data; boundary=b"
	const text = "--b\r\nContent-Disposition: form-data; name=\"response_format\"\r\n\r\ntext\r\n"
	v.ask(200, "POST", "/v1/audio/transcriptions", fmt.Sprintf(form, ""), "Content-Type", formType)
	v.ask(200, "POST", "/v1/audio/translations", fmt.Sprintf(form, text), "Content-Type", formType)
	v.ask(400, "POST", "/v1/audio/transcriptions", `{"model":"sandbox-transcription"}`)
	const countRequest = `{"model":"sandbox-messages","messages":[{"role":"user","content":"hi"}]}`
	oncePerMinute := v.limited(map[string]any{"rpm": 1})
	for range 2 {
		v.ask(200, "POST", "/native/v1/messages/count_tokens", countRequest, oncePerMinute...)
	}
	v.ask(200, "POST", "/native/v1/messages/count_tokens", countRequest, v.poor()...)
}

// refusals provokes the most frequent errors.
func (v *contractClient) refusals() {
	chat := func(want int, body string, headers ...string) {
		v.ask(want, "POST", "/v1/chat/completions", body, headers...)
	}
	const good = `{"model":"sandbox-chat","messages":[{"role":"user","content":"hi"}]}`
	chat(401, good, "Authorization", "")
	chat(401, good, "Authorization", "Bearer sk-unknown")
	chat(400, `{`)
	chat(400, `[]`)
	chat(400, "{\"model\":\"\xff\"}")
	chat(400, `{"model":"no-such","messages":[]}`)
	chat(400, `{"model":"sandbox-chat","messages":[]}`)
	chat(400, `{"model":"sandbox-chat","messages":[{"role":"king"}]}`)
	chat(400, `{"model":"sandbox-chat","messages":[{"role":"user","content":"hi"}],"max_tokens":0}`)
	chat(402, `{"model":"sandbox-chat","messages":[{"role":"user","content":"hi"}],"n":128,"max_tokens":1000000}`, v.poor()...)
	chat(403, good, v.limited(map[string]any{"allowed_models": []string{"sandbox-image"}})...)
	chat(403, good, v.limited(map[string]any{"allowed_ips": []string{"192.0.2.1"}})...)
	oncePerMinute := v.limited(map[string]any{"rpm": 1})
	chat(200, good, oncePerMinute...)
	chat(429, good, oncePerMinute...)
	v.ask(400, "POST", "/v1/responses", `{"model":"sandbox-chat","input":"hi","max_output_tokens":0}`)
	v.ask(405, "GET", "/v1/chat/completions", "")
	v.ask(404, "GET", "/v1/models/no-such", "")
	v.ask(404, "POST", "/v1/audio/voices", "{}")
	v.ask(404, "POST", "/native/v1/complete", "{}")
	v.ask(405, "GET", "/native/v1/messages", "")
	for want, body := range map[int]string{
		400: `{"model":"sandbox-messages","messages":[{"role":"user","content":"hi"}]}`,
		404: `{"model":"sandbox-image","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
	} {
		v.ask(want, "POST", "/native/v1/messages", body)
	}
	v.ask(401, "POST", "/native/v1/messages", "{}", "Authorization", "")
	v.ask(402, "POST", "/native/v1/messages", `{"model":"sandbox-messages","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		v.poor()...)
	const content = `{"contents":[{"parts":[{"text":"hi"}]}]}`
	v.ask(400, "POST", "/v1beta/models/sandbox-chat:generateContent", `{"contents":[]}`)
	v.ask(401, "POST", "/v1beta/models/sandbox-chat:generateContent", "{}", "Authorization", "")
	v.ask(402, "POST", "/v1/models/sandbox-chat:streamGenerateContent", content, v.poor()...)
	v.ask(404, "POST", "/v1beta/models/no-such:generateContent", content)
	v.ask(404, "POST", "/v1beta/models/sandbox-chat:embedContent", "{}")
	v.ask(405, "PUT", "/v1beta/models/sandbox-chat", "{}")
	v.ask(400, "GET", "/v1beta/models?pageSize=0", "")
	v.ask(404, "GET", "/v1beta/models/no-such", "")
	v.ask(400, "GET", "/native/v1/models?limit=0", "")
	v.ask(404, "GET", "/native/v1/models/no-such", "")
	v.ask(400, "GET", "/v1/usage?group_by=moon", "")
	v.ask(404, "GET", "/media/nothing.png", "")
	v.ask(401, "GET", "/admin/v1/accounts", "", "Authorization", "Bearer wrong")
	v.ask(400, "GET", "/admin/v1/accounts?limit=0", "")
	v.ask(404, "GET", "/admin/v1/accounts/no-such", "")
	v.ask(405, "DELETE", "/admin/v1/accounts", "")
	v.ask(404, "GET", "/admin/v1/no-such", "")
	v.ask(400, "POST", "/admin/v1/accounts", `{"nome":"x"}`)
}

// poor returns the headers of a caller without money.
func (v *contractClient) poor() []string {
	_, key := v.process.Account(0, nil)
	return []string{"Authorization", "Bearer " + key}
}

// limited returns the headers of a caller whose key has limits.
func (v *contractClient) limited(limits map[string]any) []string {
	_, key := v.process.Account(10, limits)
	return []string{"Authorization", "Bearer " + key}
}

// media submits jobs for images and videos and reads the results.
func (v *contractClient) media() {
	const image = `{"model":"sandbox-image","prompt":"a lake","n":1}`
	once := []string{"Idempotency-Key", "one"}
	job := v.ask(202, "POST", "/v1/images/generations", image, once...)
	v.ask(202, "POST", "/v1/images/generations", image, once...)
	v.ask(400, "POST", "/v1/images/generations", `{"model":"sandbox-image","prompt":"other"}`, once...)
	v.ask(400, "POST", "/v1/images/generations", `{"model":"sandbox-image"}`)
	v.ask(400, "POST", "/v1/images/generations", `{"model":"sandbox-image","prompt":"a","resolution":"99K"}`)
	v.ask(400, "POST", "/v1/images/generations", `{"model":"sandbox-image","prompt":"a","callback_url":"ftp://x"}`)
	v.ask(400, "POST", "/v1/images/edits", image)
	v.ask(400, "POST", "/v1/videos/generations", `{"model":"sandbox-video","prompt":"a","resolution":"99K"}`)
	done := v.wait("/v1/images/jobs/" + text(job, "id"))
	link := text(first(done), "url")
	_, file, _ := strings.Cut(link, "/media/")
	v.ask(200, "GET", "/media/"+file, "")
	v.ask(206, "GET", "/media/"+file, "", "Range", "bytes=0-9")
	v.ask(416, "GET", "/media/"+file, "", "Range", "bytes=99999999-")
	edit := v.ask(202, "POST", "/v1/images/edits", `{"model":"sandbox-image","prompt":"a boat","image":"`+v.process.URL+"/media/"+file+`"}`)
	v.wait("/v1/images/jobs/" + text(edit, "id"))
	clip := v.ask(202, "POST", "/v1/videos/generations", `{"model":"sandbox-video","prompt":"a lake"}`)
	v.wait("/v1/videos/jobs/" + text(clip, "id"))
	v.ask(404, "GET", "/v1/videos/jobs/"+text(job, "id"), "")
	v.ask(200, "GET", "/admin/v1/jobs?limit=2", "")
	v.ask(200, "GET", "/admin/v1/jobs/"+text(job, "id"), "")
	v.ask(404, "GET", "/admin/v1/jobs/no-such", "")
	v.ask(200, "POST", "/admin/v1/jobs/"+text(job, "id")+"/requeue", `{"force":true}`)
	for status, limits := range map[int]map[string]any{402: {"total_limit_usd": 0.04}, 429: {"rpm": 1}} {
		only := v.ask(202, "POST", "/v1/images/generations", `{"model":"sandbox-image","prompt":"a hill"}`, v.limited(limits)...)
		v.wait("/admin/v1/jobs/" + text(only, "id"))
		v.ask(status, "POST", "/admin/v1/jobs/"+text(only, "id")+"/requeue", `{"force":true}`)
	}
	v.ask(400, "POST", "/admin/v1/jobs/"+text(job, "id")+"/cancel", "")
	v.ask(200, "POST", "/admin/v1/lines/sandbox/drain", "")
	waiting := v.ask(202, "POST", "/v1/videos/generations", `{"model":"sandbox-video","prompt":"the sea"}`)
	v.ask(200, "GET", "/v1/videos/jobs/"+text(waiting, "id"), "")
	v.ask(200, "POST", "/admin/v1/jobs/"+text(waiting, "id")+"/cancel", "")
	v.ask(200, "GET", "/v1/videos/jobs/"+text(waiting, "id"), "")
	v.ask(200, "POST", "/admin/v1/lines/sandbox/resume", "{}")
	v.ask(200, "PUT", "/admin/v1/secrets/vendor", `{"value":"sk-of-a-provider"}`)
	v.ask(400, "PUT", "/admin/v1/secrets/vendor", `{"value":"sk-of\na-provider"}`)
	v.ask(200, "GET", "/admin/v1/secrets", "")
	v.ask(200, "POST", "/admin/v1/secrets/rotate", "{}")
	v.ask(200, "DELETE", "/admin/v1/secrets/vendor", "")
	v.ask(404, "DELETE", "/admin/v1/secrets/vendor", "")
}

// wait polls a job until it has ended, and fails the test unless it has succeeded.
func (v *contractClient) wait(path string) (job map[string]any) {
	v.t.Helper()
	scene.Eventually(v.t, "the job ends", func() bool {
		job = v.ask(200, "GET", path, "")
		return text(job, "status") != "queued" && text(job, "status") != "processing"
	})
	if text(job, "status") != "succeeded" {
		v.t.Errorf("%s: %v", path, job)
	}
	return job
}

// reads calls the free operations of a client, and the operator's requests and usage.
func (v *contractClient) reads() {
	for _, path := range []string{"/v1/models", "/v1/models/sandbox-video", "/v1/usage", "/v1/usage?group_by=day,model,key,endpoint",
		"/v1/usage?format=csv&group_by=day", "/v1/dashboard/billing/credit_grants", "/native/v1/models?limit=1",
		"/native/v1/models/sandbox-messages", "/v1beta/models?pageSize=1", "/v1beta/models/sandbox-chat"} {
		v.ask(200, "GET", path, "")
	}
	v.ask(200, "GET", "/admin/v1/usage?group_by=day,account,key,model,line,endpoint", "")
	v.ask(200, "GET", "/admin/v1/usage?format=csv", "")
	request := first(v.ask(200, "GET", "/admin/v1/requests", ""))
	v.ask(200, "GET", "/admin/v1/requests/"+text(request, "id"), "")
	v.ask(404, "GET", "/admin/v1/requests/no-such", "")
}
