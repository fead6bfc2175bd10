package jobrequest

import (
	"fmt"
	"testing"
)

// TestRoles tests roles set by a reference object or by the name of the field. If one reference has
// a role, the references without a role become subjects.
func TestRoles(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"image":"https://h/a","images":["https://h/b"]}`:                          `[image: images[0]:]`,
		`{"first_frame":"https://h/a","last_frame":{"url":"https://h/b"}}`:          `[first_frame:first_frame last_frame:last_frame]`,
		`{"images":[{"url":"https://h/a","role":"last_frame"},"https://h/b"]}`:      `[images[0]:last_frame images[1]:reference]`,
		`{"references":[{"role":"reference","type":"video","url":"https://h/a"}]}`:  `[references[0]:reference]`,
		`{"references":[{"role":"first_frame","url":"https://h/a"}],"prompt":null}`: `[references[0]:first_frame]`,
	} {
		r, err := OpenVideo([]byte(body))
		if err == nil {
			err = r.Check()
		}
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		var got []string
		for _, ref := range r.References {
			got = append(got, ref.Param+":"+ref.Role)
			if isFrame(ref.Role) && (ref.Video || !ref.Image) {
				t.Errorf("%s: a frame must be an image: %+v", body, ref)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", body, got, want)
		}
		if roles := r.RolesOfReferences(); roles != nil && len(roles) != len(r.References) {
			t.Errorf("%s: roles %v", body, roles)
		}
	}
}

// TestChoices checks that Check records the optional features of a request, and that Params sends
// them.
func TestChoices(t *testing.T) {
	t.Parallel()
	r, err := OpenVideo([]byte(`{"prompt":"x","audio":false,"seed":-1,"negative_prompt":"fog"}`))
	if err == nil {
		err = r.Check()
	}
	if err != nil || r.Audio == nil || *r.Audio || fmt.Sprint(r.Choices) != "[seed negative_prompt]" {
		t.Fatalf("audio %v, choices %v, %v", r.Audio, r.Choices, err)
	}
	on := true
	r.Audio = &on
	for names, want := range map[string]string{"": `{"audio":true}`, "seed": `{"seed":-1,"audio":true}`, "audio": `{"audio":true}`} {
		if params, err := r.Params([]string{names}, anyAddress); string(params) != want || err != nil {
			t.Errorf("params of %q: %s, %v; want %s", names, params, err, want)
		}
	}
	r, err = OpenVideo([]byte(`{"prompt":"x","audio":null,"seed":null}`))
	if err == nil {
		err = r.Check()
	}
	if err != nil || r.Audio != nil || r.Choices != nil {
		t.Errorf("null must be ignored: audio %v, choices %v, %v", r.Audio, r.Choices, err)
	}
}
