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

func TestChoicesOfAModel(t *testing.T) {
	t.Parallel()
	on, off := true, false
	frame := []Role{{jobrequest.FirstFrame, "images[1]"}}
	for _, tt := range []struct {
		keys  string
		ask   Choices
		param string // the field at fault; empty if the choices are accepted
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
		_, err := film(t, tt.keys).PlanVideo(VideoRequest{Choices: tt.ask})
		if tt.param == "" && err != nil {
			t.Errorf("%s: choices %+v are rejected: %v", tt.keys, tt.ask, err)
		} else if tt.param != "" {
			refused(t, err, fault.InvalidRequest, tt.param)
		}
	}
	_, err := easel(t).PlanImage(ImageRequest{Choices: Choices{Params: []string{"seed"}}})
	refused(t, err, fault.InvalidRequest, "seed")
}

func TestSounds(t *testing.T) {
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
				t.Errorf("%s: %s, want %s", keys, got, want[i])
			}
		}
	}
}

// TestVocabularyIsWritten tests that YAML writes the vocabulary of a model (roles and audio), and
// that Changes lists a change of the vocabulary.
func TestVocabularyIsWritten(t *testing.T) {
	t.Parallel()
	const head = `models: [{id: film, kind: video, per_clip: {720p: 0.4}, max_references: 2`
	before := mustParse(t, head+`, roles: [first_frame, last_frame], audio: optional}]`)
	if again := mustParse(t, string(before.YAML())); !Equal(before, again) || again.Models[0].Roles[1] != jobrequest.LastFrame {
		t.Errorf("the catalog changed when written and read again: %s", before.YAML())
	}
	changes := strings.Join(Changes(before, mustParse(t, head+`, roles: [reference], audio: false}]`)), "; ")
	if want := `model film: roles [first_frame, last_frame] -> [reference]; model film: audio optional -> false`; changes != want {
		t.Errorf("changes %s, want %s", changes, want)
	}
}
