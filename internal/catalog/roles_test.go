package catalog

import (
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/wire/jobrequest"
)

// film returns a video model with further keys in its catalog entry.
func film(t testing.TB, keys string) *Model {
	return &mustParse(t, `models: [{id: film, kind: video, per_clip: {720p: 0.4}, max_references: 2`+keys+`}]`).Models[0]
}

// TestChoicesOfAModel checks that params, roles and audio are rejected unless the model offers
// them.
func TestChoicesOfAModel(t *testing.T) {
	t.Parallel()
	on, off := true, false
	frame := []Role{{jobrequest.FirstFrame, "images[1]"}}
	for _, tt := range []struct {
		keys    string
		choices Choices
		param   string // of the error; empty if the choices are accepted
	}{
		{``, Choices{}, ""},
		{``, Choices{Params: []string{"seed"}}, "seed"},
		{`, params: [seed]`, Choices{Params: []string{"seed"}}, ""},
		{`, params: [seed]`, Choices{Params: []string{"seed", "negative_prompt"}}, "negative_prompt"},
		{``, Choices{Roles: frame}, "images[1]"},
		{`, roles: [reference, last_frame]`, Choices{Roles: frame}, "images[1]"},
		{`, roles: [first_frame]`, Choices{Roles: frame}, ""},
		{``, Choices{Audio: &off}, "audio"},
		{`, audio: true`, Choices{Audio: &off}, "audio"},
		{`, audio: true`, Choices{Audio: &on}, ""},
		{`, audio: false`, Choices{Audio: &on}, "audio"},
		{`, audio: optional`, Choices{Audio: &on}, ""},
		{`, params: [audio]`, Choices{Audio: &off}, ""},
	} {
		_, err := film(t, tt.keys).PlanVideo(VideoRequest{Choices: tt.choices})
		if tt.param == "" && err != nil {
			t.Errorf("model with %q, choices %+v: error %v, want none", tt.keys, tt.choices, err)
		} else if tt.param != "" {
			checkFault(t, err, fault.InvalidRequest, tt.param)
		}
	}
	_, err := easel(t).PlanImage(ImageRequest{Choices: Choices{Params: []string{"seed"}}})
	checkFault(t, err, fault.InvalidRequest, "seed")
}

// TestSoundSetting checks that the model's sound setting replaces the submission's unless it is
// optional.
func TestSoundSetting(t *testing.T) {
	t.Parallel()
	on := true
	for keys, want := range map[string][2]string{
		``: {"unset", "on"}, `, audio: true`: {"on", "on"}, `, audio: false`: {"off", "off"}, `, audio: optional`: {"unset", "on"},
	} {
		m := film(t, keys)
		for i, requested := range []*bool{nil, &on} {
			got := "unset"
			if sound := m.SoundSetting(requested); sound != nil {
				got = map[bool]string{true: "on", false: "off"}[*sound]
			}
			if got != want[i] {
				t.Errorf("model with %q: got %s, want %s", keys, got, want[i])
			}
		}
	}
}

// TestRolesAndAudioArePrinted checks that YAML prints a model's roles and audio, and that Changes
// lists their changes.
func TestRolesAndAudioArePrinted(t *testing.T) {
	t.Parallel()
	const head = `models: [{id: film, kind: video, per_clip: {720p: 0.4}, max_references: 2`
	before := mustParse(t, head+`, roles: [first_frame, last_frame], audio: optional}]`)
	if again := mustParse(t, string(before.YAML())); !Equal(before, again) || again.Models[0].Roles[1] != jobrequest.LastFrame {
		t.Errorf("the document does not read back:\n%s", before.YAML())
	}
	changes := strings.Join(Changes(before, mustParse(t, head+`, roles: [reference], audio: false}]`)), "; ")
	if want := `model film: roles [first_frame, last_frame] -> [reference]; model film: audio optional -> false`; changes != want {
		t.Errorf("got changes %s, want %s", changes, want)
	}
}
