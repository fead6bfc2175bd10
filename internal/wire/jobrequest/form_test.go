package jobrequest

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// formField is a field of a form, with a file name if file is set.
type formField struct {
	name, value string
	file        bool
}

// formOf returns a multipart body with a boundary.
func formOf(t testing.TB, boundary string, fields ...formField) (contentType string, body []byte) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	if err := w.SetBoundary(boundary); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		create := w.CreateFormField
		if f.file {
			create = func(name string) (io.Writer, error) { return w.CreateFormFile(name, "picture.png") }
		}
		part, err := create(f.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(f.value)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), out.Bytes()
}

// edit opens and checks an edit sent as a form.
func edit(t testing.TB, fields ...formField) (*Image, error) {
	t.Helper()
	r, err := OpenForm(formOf(t, "b", fields...))
	if err != nil {
		return nil, err
	}
	return r, r.Check(true)
}

func TestForms(t *testing.T) {
	t.Parallel()
	r, err := edit(t, formField{"model", "easel-1", false}, formField{"prompt", `a "hat"`, false}, formField{"image[]", "\x89PNG\xff", true},
		formField{"image[]", "two", true}, formField{"images", "https://h/three.png", false}, formField{"image[2]", "aGk=",
			false}, formField{"mask", "mask", true},
		formField{"n", "2", false}, formField{"size", "16:9", false}, formField{"resolution", "", false},
		formField{"callback_url", "https://c/x", false},
		formField{"seed", "-12", false},
		formField{"guidance", "-12.5", false}, formField{"watermark", "false", false}, formField{"style", "12px", false},
		formField{"tags[]", "a", false}, formField{"tags[]", "b", false},
		formField{"extra", "ignored", true})
	if err != nil {
		t.Fatal(err)
	}
	if model, err := r.Model(); model != "easel-1" || err != nil {
		t.Errorf("model %q, %v", model, err)
	}
	if r.Prompt != `a "hat"` || r.N != 2 || r.Size != "16:9" || r.Resolution != "" || r.Callback != "https://c/x" || r.ReferenceCount != 4 {
		t.Errorf("%+v", r.Request)
	}
	got := ""
	for _, ref := range r.References {
		what := ref.Address
		if what == "" {
			data, err := ref.Data()
			if err != nil {
				t.Fatal(err)
			}
			what = string(data)
		}
		got += fmt.Sprintf("%s=%q ", ref.Param, what)
	}
	if want := `image[0]="\x89PNG\xff" image[1]="two" image[2]="hi" images="https://h/three.png" `; got != want {
		t.Errorf("references %s; want %s", got, want)
	}
	if data, err := r.Mask.Data(); string(data) != "mask" || err != nil {
		t.Errorf("mask %q, %v", data, err)
	}
	params, err := r.Params([]string{"seed", "guidance", "style", "watermark", "tags", "extra"}, anyAddress)
	if want := `{"seed":-12,"guidance":-12.5,"style":"12px","watermark":false}`; string(params) != want || err != nil {
		t.Errorf("params %s, %v; want %s", params, err, want)
	}
	single, err := edit(t, formField{"image", "one", true}, formField{"prompt", "x", false})
	if err != nil || single.References[0].Param != "image" {
		t.Errorf("a single file: %+v, %v", single, err)
	}
}

func TestWhatFormsAreRefusedFor(t *testing.T) {
	t.Parallel()
	prompt, image := formField{"prompt", "x", false}, formField{"image", "one", true}
	many := []formField{prompt, image}
	for i := range maxParts {
		many = append(many, formField{fmt.Sprint("f", i), "", false})
	}
	for _, tt := range []struct {
		name   string
		fields []formField
		code   fault.Code
		param  string
	}{
		{"nothing", nil, fault.InvalidRequest, "image"},
		{"no image", []formField{prompt, {"n", "x", false}}, fault.InvalidRequest, "image"},
		{"an empty text", []formField{prompt, {"image", "", false}}, fault.InvalidRequest, "image"},
		{"an empty file", []formField{prompt, {"image", "", true}}, fault.InvalidRequest, "image"},
		{"an empty file among others", []formField{prompt, {"image[]", "x", true}, {"image[]", "", true}}, fault.InvalidRequest, "image[1]"},
		{"no prompt", []formField{image}, fault.MissingPrompt, "prompt"},
		{"n no number", []formField{prompt, image, {"n", "two", false}}, fault.InvalidRequest, "n"},
		{"n a fraction", []formField{prompt, image, {"n", "1.5", false}}, fault.InvalidRequest, "n"},
		{"streamed", []formField{prompt, image, {"stream", "true", false}}, fault.InvalidRequest, "stream"},
		{"prompt twice", []formField{prompt, prompt, image}, fault.InvalidRequest, "prompt"},
		{"prompt a file", []formField{image, {"prompt", "x", true}}, fault.InvalidRequest, "prompt"},
		{"prompt not UTF-8", []formField{image, {"prompt", "\xff", false}}, fault.InvalidEncoding, "prompt"},
		{"a long text", []formField{image, {"user", strings.Repeat("x", maxTextField+1), false}}, fault.InvalidRequest, "user"},
		{"no name", []formField{{"", "x", false}}, fault.InvalidRequest, ""},
		{"a long name", []formField{{strings.Repeat("x", maxPartName+1), "x", false}}, fault.InvalidRequest, ""},
		{"many parts", many, fault.InvalidRequest, ""},
		{"two masks", []formField{prompt, image, {"mask", "a", true}, {"mask", "b", true}}, fault.InvalidRequest, "mask"},
		{"another scheme", []formField{prompt, {"image", "gopher://h/x", false}}, fault.InvalidRequest, "image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := edit(t, tt.fields...)
			wantFault(t, err, tt.code, tt.param)
		})
	}
	contentType, body := formOf(t, "b", prompt, image)
	for _, tt := range []struct{ contentType, body string }{
		{"multipart/form-data", string(body)},
		{"multipart/form-data; boundary=", string(body)},
		{"multipart/form-data; boundary=other", string(body)},
		{contentType, string(body[:len(body)-8])},
		{contentType, ""},
		{contentType, `{"model":"x"}`},
		{contentType, "--b\r\nContent-Disposition: form-data\r\n"},
	} {
		if _, err := OpenForm(tt.contentType, []byte(tt.body)); err == nil {
			t.Errorf("%s: accepted %q", tt.contentType, tt.body)
		} else {
			wantFault(t, err, fault.InvalidRequest, "")
		}
	}
}

// TestFormsAreTheSameWithAnyBoundary checks that the fingerprint does not depend on the boundary,
// because clients choose a new boundary to repeat a request.
func TestFormsAreTheSameWithAnyBoundary(t *testing.T) {
	t.Parallel()
	print := func(boundary string, fields ...formField) string {
		r, err := OpenForm(formOf(t, boundary, fields...))
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Fingerprint("/x"))
	}
	prompt, image := formField{"prompt", "x", false}, formField{"image", "one", true}
	same := print("a", prompt, image)
	if same != print("b", prompt, image) {
		t.Error("another boundary makes another request")
	}
	for name, other := range map[string]string{
		"other file": print("a", prompt, formField{"image", "two", true}), "text for file": print("a", prompt, formField{"image", "one", false}),
		"other order": print("a", image, prompt), "fields that run together": print("a", formField{"promptx", "", false}, image),
	} {
		if same == other {
			t.Errorf("%s: the same fingerprint", name)
		}
	}
}

func TestIsForm(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]bool{
		"multipart/form-data; boundary=x": true, "Multipart/Form-Data": true, " multipart/form-data ;boundary=x": true,
		"": false, "application/json": false, "multipart/mixed; boundary=x": false,
	} {
		if IsForm(contentType) != want {
			t.Errorf("%q: %t", contentType, !want)
		}
	}
}

func FuzzForm(f *testing.F) {
	contentType, body := formOf(f, "b", formField{"model", "m", false}, formField{"prompt", "x", false}, formField{"image[]", "\x89PNG", true},
		formField{"image", "https://h/a", false}, formField{"mask", "m", true}, formField{"n", "2", false}, formField{"seed", "1e5", false})
	f.Add(contentType, body)
	f.Add("multipart/form-data; boundary=\"b c\"",
		[]byte("--b c\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n--b c--\r\n"))
	f.Add(contentType, []byte("--b\r\nContent-Disposition: form-data; name=\"image[x]\"\r\n\r\n\r\n--b--"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		r, err := OpenForm(contentType, body)
		wantClientFault(t, err)
		if err != nil {
			return
		}
		if _, err := rawjson.Open(r.doc.Body); err != nil {
			t.Fatalf("the fields of the form make %q: %v", r.doc.Body, err)
		}
		checkInvariants(t, &r.Request, r.Check(true))
		checkInvariants(t, &r.Request, r.Check(false))
	})
}
