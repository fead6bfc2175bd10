package jobrequest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// wantFault checks the code and field of an error.
func wantFault(t *testing.T, err error, code fault.Code, param string) {
	t.Helper()
	if err == nil {
		t.Errorf("accepted; want %s about %q", code, param)
		return
	}
	f := fault.Of(err)
	if f.Code != code || f.Param != param || f.Message() == "" {
		t.Errorf("%s about %q (%s); want %s about %q", f.Code, f.Param, f.Message(), code, param)
	}
}

// image opens and checks an image submission.
func image(body string, edit bool) (*Image, error) {
	r, err := OpenImage([]byte(body))
	if err != nil {
		return nil, err
	}
	return r, r.Check(edit)
}

// video opens and checks a video submission.
func video(body string) (*Video, error) {
	r, err := OpenVideo([]byte(body))
	if err != nil {
		return nil, err
	}
	return r, r.Check()
}

func TestImageFields(t *testing.T) {
	t.Parallel()
	r, err := image(`{"model":"easel-1","prompt":"a \"hat\"","size":"16:9","resolution":"2K","n":3,"image":["https://h/a.png","aGk="],
		"images":"https://h/c.png","mask":"bWFzaw","callBackUrl":"https://c/x","unknown":{"a":1},"user":null}`, true)
	if err != nil {
		t.Fatal(err)
	}
	if model, err := r.Model(); model != "easel-1" || err != nil {
		t.Errorf("model %q, %v", model, err)
	}
	if r.Prompt != `a "hat"` || r.Size != "16:9" || r.Resolution != "2K" || r.N != 3 || r.Callback != "https://c/x" ||
		r.CallbackParam != "callBackUrl" {
		t.Errorf("%+v", r.Request)
	}
	var params []string
	for _, ref := range r.References {
		params = append(params, ref.Param)
		if !ref.Image || ref.Video {
			t.Errorf("%s may be a video", ref.Param)
		}
	}
	want := []string{"image[0]", "image[1]", "images"}
	if !slices.Equal(params, want) || r.ReferenceCount != 3 || r.ReferencesParam != "image" {
		t.Errorf("references %v, counted %d in %s", params, r.ReferenceCount, r.ReferencesParam)
	}
	if data, err := r.References[1].Data(); string(data) != "hi" || err != nil {
		t.Errorf("image[1] is %q, %v", data, err)
	}
	if data, err := r.Mask.Data(); string(data) != "mask" || err != nil || r.Mask.Param != "mask" {
		t.Errorf("the mask is %q, %v", data, err)
	}
	if bare, err := image(`{"prompt":"x","n":null,"size":null,"image":null,"callback_url":null}`,
		false); err != nil || bare.N != 0 || bare.ReferenceCount != 0 || bare.CallbackParam != "" {
		t.Errorf("null is not absent: %+v, %v", bare, err)
	}
}

func TestVideoFields(t *testing.T) {
	t.Parallel()
	r, err := video(`{"prompt":"","duration":7.5,"resolution":"1080p","aspect_ratio":"9:16","image":"https://h/a.png",
		"reference_images":[{"image_url":"https://h/b.png"}],"references":["HTTPS://h/c",{"url":"https://h/d","type":"video"},` +
		`{"type":"image","url":"data:image/png;base64,aGk="}],
		"callback_url":"https://c/x","n":1}`)
	if err != nil {
		t.Fatal(err)
	}
	if r.Duration != "7.5" || r.Resolution != "1080p" || r.Ratio != "9:16" || r.RatioParam != "aspect_ratio" ||
		r.CallbackParam != "callback_url" {
		t.Errorf("%+v", r.Request)
	}
	want := "image image:true video:false|reference_images[0] image:true video:false|references[0] image:true video:true|" +
		"references[1] image:false video:true|references[2] image:true video:false"
	var got []string
	for _, ref := range r.References {
		got = append(got, fmt.Sprintf("%s image:%t video:%t", ref.Param, ref.Image, ref.Video))
	}
	if strings.Join(got, "|") != want {
		t.Errorf("references %v", got)
	}
	if r, err := video(`{"prompt":"x","duration":"auto"}`); err != nil || r.Duration != "" {
		t.Errorf("auto: %+v, %v", r, err)
	}
}

func TestInvalidSubmissions(t *testing.T) {
	t.Parallel()
	edit := func(body string) error { _, err := image(body, true); return err }
	create := func(body string) error { _, err := image(body, false); return err }
	clip := func(body string) error { _, err := video(body); return err }
	long := strings.Repeat("ä", maxPrompt+1)
	for _, tt := range []struct {
		name  string
		err   error
		code  fault.Code
		param string
	}{
		{"edit without anything", edit(`{}`), fault.InvalidRequest, "image"},
		{"edit without a reference comes first", edit(`{"n":"x","callback_url":5,"size":7}`), fault.InvalidRequest, "image"},
		{"edit with an empty list", edit(`{"prompt":"x","image":[]}`), fault.InvalidRequest, "image"},
		{"edit with an empty text", edit(`{"prompt":"x","image":""}`), fault.InvalidRequest, "image"},
		{"no prompt", create(`{}`), fault.MissingPrompt, "prompt"},
		{"null prompt", create(`{"prompt":null}`), fault.MissingPrompt, "prompt"},
		{"empty prompt", create(`{"prompt":" \n"}`), fault.MissingPrompt, "prompt"},
		{"edit without a prompt", edit(`{"image":"https://h/a.png"}`), fault.MissingPrompt, "prompt"},
		{"prompt no string", create(`{"prompt":7}`), fault.InvalidRequest, "prompt"},
		{"long prompt", create(`{"prompt":"` + long + `"}`), fault.InvalidRequest, "prompt"},
		{"prompt with NUL", create(`{"prompt":"a\u0000b"}`), fault.InvalidRequest, "prompt"},
		{"n a text", create(`{"prompt":"x","n":"2"}`), fault.InvalidRequest, "n"},
		{"n a fraction", create(`{"prompt":"x","n":1.5}`), fault.InvalidRequest, "n"},
		{"n zero", create(`{"prompt":"x","n":0}`), fault.InvalidRequest, "n"},
		{"n a list", create(`{"prompt":"x","n":[1]}`), fault.InvalidRequest, "n"},
		{"n true", create(`{"prompt":"x","n":true}`), fault.InvalidRequest, "n"},
		{"size no string", create(`{"prompt":"x","size":1024}`), fault.InvalidRequest, "size"},
		{"resolution no string", create(`{"prompt":"x","resolution":2}`), fault.InvalidRequest, "resolution"},
		{"stream", create(`{"prompt":"x","stream":true}`), fault.InvalidRequest, "stream"},
		{"callback no string", create(`{"prompt":"x","callBackUrl":{}}`), fault.InvalidCallbackURL, "callBackUrl"},
		{"two callbacks", create(`{"prompt":"x","callBackUrl":"https://a","callback_url":"https://b"}`), fault.InvalidCallbackURL, "callBackUrl"},
		{"image a number", create(`{"prompt":"x","image":5}`), fault.InvalidRequest, "image"},
		{"image null in a list", create(`{"prompt":"x","image":["https://h/a",null]}`), fault.InvalidRequest, "image[1]"},
		{"image a list in a list", create(`{"prompt":"x","image":[["https://h/a"]]}`), fault.InvalidRequest, "image[0]"},
		{"image of another scheme", create(`{"prompt":"x","image":"file:///etc/passwd"}`), fault.InvalidRequest, "image"},
		{"image without an address", create(`{"prompt":"x","images":[{"name":"a"}]}`), fault.InvalidRequest, "images[0]"},
		{"image stored elsewhere", create(`{"prompt":"x","images":[{"file_id":"file-1"}]}`), fault.InvalidRequest, "images[0].file_id"},
		{"image of the wrong type", create(`{"prompt":"x","image":{"url":"https://h/a","type":"video"}}`), fault.InvalidRequest, "image.type"},
		{"mask without an image", create(`{"prompt":"x","mask":"aGk="}`), fault.InvalidRequest, "mask"},
		{"two masks", create(`{"prompt":"x","image":"aGk=","mask":["aGk=","aGk="]}`), fault.InvalidRequest, "mask"},
		{"video without prompt and reference", clip(`{"image":[]}`), fault.MissingPrompt, "prompt"},
		{"video prompt no string", clip(`{"prompt":{},"image":"https://h/a"}`), fault.InvalidRequest, "prompt"},
		{"duration a text", clip(`{"prompt":"x","duration":"5"}`), fault.InvalidRequest, "duration"},
		{"duration a list", clip(`{"prompt":"x","duration":[5]}`), fault.InvalidRequest, "duration"},
		{"image of a strange type", clip(`{"prompt":"x","images":[{"url":"https://h/a","type":"audio"}]}`),
			fault.InvalidRequest, "images[0].type"},
		{"two ratios", clip(`{"prompt":"x","ratio":"1:1","aspect_ratio":"16:9"}`), fault.InvalidRequest, "aspect_ratio"},
		{"ratio a number", clip(`{"prompt":"x","ratio":1.5}`), fault.InvalidRequest, "ratio"},
		{"several clips", clip(`{"prompt":"x","n":2}`), fault.InvalidRequest, "n"},
		{"audio a text", clip(`{"prompt":"x","audio":"on"}`), fault.InvalidRequest, "audio"},
		{"seed a fraction", clip(`{"prompt":"x","seed":1.5}`), fault.InvalidRequest, "seed"},
		{"seed a text", create(`{"prompt":"x","seed":"7"}`), fault.InvalidRequest, "seed"},
		{"negative prompt a list", create(`{"prompt":"x","negative_prompt":["fog"]}`), fault.InvalidRequest, "negative_prompt"},
		{"an unknown role", clip(`{"image":{"url":"https://h/a","role":"middle"}}`), fault.InvalidRequest, "image.role"},
		{"another role than its field's", clip(`{"last_frame":{"url":"https://h/a","role":"first_frame"}}`),
			fault.InvalidRequest, "last_frame.role"},
		{"a frame in an image request", create(`{"prompt":"x","image":{"url":"https://h/a","role":"first_frame"}}`),
			fault.InvalidRequest, "image.role"},
		{"a video as frame", clip(`{"references":[{"type":"video","url":"https://h/a","role":"last_frame"}]}`),
			fault.InvalidRequest, "references[0].role"},
		{"two first frames", clip(`{"first_frame":"https://h/a","images":[{"url":"https://h/b","role":"first_frame"}]}`),
			fault.InvalidRequest, "images[0]"},
		{"a list of first frames", clip(`{"first_frame":["https://h/a","https://h/b"]}`), fault.InvalidRequest, "first_frame[1]"},
		{"reference of an unknown type", clip(`{"prompt":"x","references":[{"url":"https://h/a","type":"audio"}]}`),
			fault.InvalidRequest, "references[0].type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantFault(t, tt.err, tt.code, tt.param)
		})
	}
}

func TestInvalidBodies(t *testing.T) {
	t.Parallel()
	for body, code := range map[string]fault.Code{
		"\xff": fault.InvalidEncoding, "{": fault.InvalidJSON, "[]": fault.InvalidRequest, `{"model":"a","model":"b"}`: fault.InvalidJSON,
		`{"image":{"url":"a","url":"b"}}`: fault.InvalidJSON, `{"images":[{"url":"a","url":"b"}]}`: fault.InvalidJSON,
	} {
		_, err := OpenImage([]byte(body))
		wantFault(t, err, code, "")
		_, err = OpenVideo([]byte(body))
		wantFault(t, err, code, "")
	}
	for _, body := range []string{`{}`, `{"model":null}`, `{"model":""}`, `{"model":5}`} {
		r, err := OpenVideo([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Model()
		wantFault(t, err, fault.ModelNotFound, "model")
	}
}

func TestInlineReferences(t *testing.T) {
	t.Parallel()
	want := []byte{0xfb, 0xef, 0xff, 1, 2}
	standard, url := base64.StdEncoding.EncodeToString(want), base64.URLEncoding.EncodeToString(want)
	for _, text := range []string{
		standard, url, strings.TrimRight(standard, "="), strings.TrimRight(url, "="), standard[:4] + `\r\n` + standard[4:] + `\n`,
		strings.ReplaceAll(standard, "/", `\/`), "data:image/png;base64," + standard,
		"DATA:image/png;name=a.png;BASE64," + standard, "data:;base64," + url,
	} {
		r, err := image(`{"prompt":"x","image":"`+text+`"}`, true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := r.References[0].Data(); !bytes.Equal(got, want) || err != nil {
			t.Errorf("%s: %x, %v", text, got, err)
		}
	}
	for _, text := range []string{"not base64!", "data:image/png,abc", "data:image/png;base64,***",
		"data:" + strings.Repeat("x", 500) + ";base64,aGk=", "====", "a"} {
		r, err := image(`{"prompt":"x","image":["`+text+`"]}`, true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, err = r.References[0].Data()
		wantFault(t, err, fault.InvalidRequest, "image[0]")
	}
}

// TestLongReferenceLists checks that a long list is counted but not kept in memory.
func TestLongReferenceLists(t *testing.T) {
	t.Parallel()
	r, err := video(`{"references":["aGk="` + strings.Repeat(`,"aGk="`, 9999) + `]}`)
	if err != nil || r.ReferenceCount != 10_000 || len(r.References) != maxReferences {
		t.Errorf("counted %d, kept %d, %v", r.ReferenceCount, len(r.References), err)
	}
}

// anyAddress accepts every address.
func anyAddress(string) error { return nil }

func TestParams(t *testing.T) {
	t.Parallel()
	names := []string{"seed", "style", "model", "image", "options", "nothing", "absent"}
	r, err := OpenImage([]byte(`{"model":"m","image":"x","options":{"a":[1, 2]},"seed":7,"style":"a\"b","nothing":null,"other":1}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Params(names, anyAddress)
	if want := `{"seed":7,"style":"a\"b","options":{"a":[1, 2]}}`; string(got) != want || err != nil {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got, err := r.Params(nil, anyAddress); got != nil || err != nil {
		t.Errorf("no names: %s, %v", got, err)
	}
	for body, param := range map[string]string{
		`{"options":{"a":{"file_id":"x"}}}`:                    "options.a.file_id",
		`{"file_id":"x"}`:                                      "file_id",
		`{"style":"` + strings.Repeat("x", maxParams+1) + `"}`: "style",
	} {
		r, err := OpenImage([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Params([]string{"options", "file_id", "style"}, anyAddress)
		wantFault(t, err, fault.InvalidRequest, param)
	}
}

func TestFingerprints(t *testing.T) {
	t.Parallel()
	fingerprint := func(endpoint, body string) string {
		r, err := OpenImage([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Fingerprint(endpoint))
	}
	same := fingerprint("/a", `{"n":1}`)
	if same != fingerprint("/a", `{"n":1}`) || same == fingerprint("/b", `{"n":1}`) || same == fingerprint("/a", `{"n": 1}`) {
		t.Error("a fingerprint must depend on the endpoint and the bytes of the body, and on nothing else")
	}
}

// TestReferencesInParams checks that further fields are rejected if they refer to files at a provider
// or to addresses rejected by the guard, and that keys are rejected if they differ only in case.
func TestReferencesInParams(t *testing.T) {
	t.Parallel()
	names := []string{"extra", "style_url", "attachments", "seed", "mask_uri", "file_id"}
	private := func(address string) error {
		if strings.Contains(address, "10.0.0.1") {
			return errors.New("The address is not public.")
		}
		return nil
	}
	for body, param := range map[string]string{
		`{"extra":{"url":"gs://b/x"}}`:                         "extra.url",
		`{"extra":[{"a":{"image_url":"s3://b/x"}}]}`:           "extra[0].a.image_url",
		`{"extra":{"image":["oss://b/x"]}}`:                    "extra.image",
		`{"extra":{"video":"file:///etc/passwd"}}`:             "extra.video",
		`{"style_url":"asset://x"}`:                            "style_url",
		`{"style_url":["https://h/x","MS://x"]}`:               "style_url",
		`{"mask_uri":"https://10.0.0.1/x"}`:                    "mask_uri",
		`{"extra":{"fileUri":"http://10.0.0.1"}}`:              "extra.fileUri",
		`{"extra":{"vector_store_ids":["x"]}}`:                 "extra.vector_store_ids",
		`{"attachments":[]}`:                                   "attachments",
		`{"extra":{"a":1,"A":2}}`:                              "extra.A",
		`{"extra":{"Url":"https://h/x"}}`:                      "extra.Url",
		`{"seed":1,"Seed":2}`:                                  "Seed",
		`{"prompt":"x","image":{"type":"a","Type":"file"}}`:    "image.Type",
		`{"extra":{"url":"https://h/x"},"mask_uri":"data:a,"}`: "",
		`{"extra":{"text":"gs://b/x"},"seed":1}`:               "",
		`{"unlisted":{"url":"gs://b/x"}}`:                      "",
		`{"image":"https://10.0.0.1/x","seed":1}`:              "", // references have checks of their own
	} {
		r, err := OpenImage([]byte(body))
		if err == nil {
			err = r.checkCase()
		}
		if err == nil {
			_, err = r.Params(names, private)
		}
		if param == "" && err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if param != "" {
			wantFault(t, err, fault.InvalidRequest, param)
		}
	}
	for field, bad := range map[string]bool{"style_url": true, "file_id": true, "extra": false} {
		r, err := edit(t, formField{"prompt", "x", false}, formField{"image", "one", true}, formField{field, "gs://b/x", false})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Params(names, private); bad {
			wantFault(t, err, fault.InvalidRequest, field)
		} else if err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzSubmission checks that no body causes a panic, an error that is not the client's, or a result
// beyond the limits.
func FuzzSubmission(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","prompt":"x","image":["https://h/a","data:image/png;base64,aGk="],"n":2,"size":"1x1"}`,
		`{"references":[{"url":"aGk","type":"video"},{}],"duration":1e5,"mask":{"image_url":"x"},"callBackUrl":""}`,
		`{"image":{"file_id":"x"},"seed":[{"file_id":1}],"prompt":"\ud800"}`,
		`{"image":"data:","prompt":"` + "\u2028" + `"}`, `{"prompt":"x","image":"\/\/\u0041"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := OpenImage(body); err == nil {
			checkInvariants(t, &r.Request, r.Check(true))
			checkInvariants(t, &r.Request, r.Check(false))
		}
		if r, err := OpenVideo(body); err == nil {
			checkInvariants(t, &r.Request, r.Check())
		}
	})
}

// checkInvariants checks the invariants of a submission.
func checkInvariants(t *testing.T, s *Request, err error) {
	t.Helper()
	wantClientFault(t, err)
	_, err = s.Model()
	wantClientFault(t, err)
	params, err := s.Params([]string{"seed", "style", "file_id", "image"}, anyAddress)
	wantClientFault(t, err)
	if params != nil {
		if _, err := rawjson.Open(params); err != nil || len(params) > maxParams+100 {
			t.Fatalf("params %s: %v", params, err)
		}
	}
	if len(s.References) > maxReferences || len(s.References) > s.ReferenceCount || len(s.Fingerprint("/x")) != 32 {
		t.Fatalf("%d references of %d", len(s.References), s.ReferenceCount)
	}
	for _, r := range s.References {
		if r.Param == "" || !r.Image && !r.Video {
			t.Fatalf("a reference without a field or without a kind: %+v", r)
		}
		if r.Address == "" {
			_, err := r.Data()
			wantClientFault(t, err)
		}
	}
}

// wantClientFault checks that an error, if any, is a 400.
func wantClientFault(t *testing.T, err error) {
	t.Helper()
	if err != nil && fault.Of(err).Status() != 400 {
		t.Fatalf("%v", err)
	}
}

// TestKindsOfReferences checks that an object in any field may be a video, and that a string in a
// field for images is an image.
func TestKindsOfReferences(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"image", "images", "reference_images", "references"} {
		r, err := OpenVideo([]byte(`{"model":"reel-1","prompt":"x","` + field + `":[{"url":"https://h/a.mp4","type":"video"},"https://h/b"]}`))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			t.Errorf("%s: %v", field, err)
			continue
		}
		if got := r.References; len(got) != 2 || !got[0].Video || got[0].Image || !got[1].Image || got[1].Video != (field == "references") {
			t.Errorf("%s: %+v", field, got)
		}
	}
}

// TestMisnamedVideoFields checks that the names of other services for the length and the size of a
// video are rejected unless the model has a param of this name.
func TestMisnamedVideoFields(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{"size": `"1280x720"`, "seconds": `"8"`} {
		r, err := OpenVideo([]byte(`{"model":"reel-1","prompt":"x","` + field + `":` + value + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if f := fault.Of(r.CheckNames(nil)); f == nil || f.Code != fault.InvalidRequest || f.Param != field {
			t.Errorf("%s: %v", field, f)
		}
		if err := r.CheckNames([]string{field}); err != nil {
			t.Errorf("%s as a param: %v", field, err)
		}
	}
}
