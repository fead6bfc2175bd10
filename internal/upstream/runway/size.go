package runway

import (
	"fmt"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// family holds the features common to a group of models.
type family struct {
	framed   bool // takes no text alone
	last     bool // takes a last frame
	seed     bool
	sound    bool // has a setting for sound
	negative bool // accepts a negative prompt
	shows    int  // maximum of reference pictures; if not 0, also accepts reference videos
	changes  bool // changes a video, and makes nothing else
	// wide and framedOnly are the sizes by tier and ratio: wide for all tasks, framedOnly just for
	// tasks with a first picture. auto is the size by tier of a clip with the shape of its first
	// frame. Without all three, the pixels of tier and ratio are used.
	wide, framedOnly, auto map[string]string
}

// familyOf returns the family for the model's ID. An unknown model gets the features common to all:
// pixels and a first frame.
func familyOf(kind, model string) family {
	if kind == upstream.KindImage {
		return family{seed: strings.HasPrefix(model, "gen4_image"), framed: model == "gen4_image_turbo", wide: pictureSizes()}
	}
	switch {
	case strings.HasPrefix(model, "gen4"):
		return family{seed: true, framed: model == "gen4_turbo", wide: map[string]string{"720p 16:9": "1280:720", "720p 9:16": "720:1280"},
			framedOnly: map[string]string{"720p 4:3": "1104:832", "720p 1:1": "960:960", "720p 3:4": "832:1104", "720p 21:9": "1584:672"}}
	case strings.HasPrefix(model, "veo"):
		return family{last: true, sound: true, negative: true, seed: true, wide: map[string]string{
			"720p 16:9": "1280:720", "720p 9:16": "720:1280", "1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920"}}
	case strings.HasPrefix(model, "kling_4"):
		return family{last: true, auto: map[string]string{"720p": "auto_720p", "1080p": "auto_1080p"}, wide: map[string]string{
			"720p 16:9": "1280:720", "720p 9:16": "720:1280", "720p 1:1": "940:940", "720p 21:9": "1460:624",
			"1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920", "1080p 1:1": "1440:1440", "1080p 21:9": "2200:940"}}
	case strings.HasPrefix(model, "kling3.0_"), strings.HasPrefix(model, "klingO3_"):
		return family{last: true, sound: true, wide: klingSizes(model)}
	}
	return resold(model)
}

// resold returns the family of the models for clips from reference pictures and videos, and of the
// model for editing videos.
func resold(model string) family {
	switch {
	case model == "aleph2":
		return family{changes: true, seed: true}
	case strings.HasPrefix(model, "wan3"):
		return family{last: true, sound: true, shows: 10,
			auto: map[string]string{"480p": "auto_480p", "720p": "auto_720p", "1080p": "auto_1080p"},
			wide: sizes(map[string]string{"480p": "832:480 720:544 624:624 544:720 480:832",
				"720p": "1280:720 1104:832 960:960 832:1104 720:1280", "1080p": "1920:1080 1648:1248 1440:1440 1248:1648 1080:1920"},
				"16:9", "4:3", "1:1", "3:4", "9:16")}
	case strings.HasPrefix(model, "seedance2"):
		f := family{last: true, sound: true, seed: true, shows: 9}
		tiers := map[string]string{"480p": "992:432 864:496 752:560 640:640 560:752 496:864",
			"720p": "1470:630 1280:720 1112:834 960:960 834:1112 720:1280"}
		if model == "seedance2" || model == "seedance2_5" {
			tiers["1080p"] = "2206:946 1920:1080 1664:1248 1440:1440 1248:1664 1080:1920"
		}
		switch model {
		case "seedance2":
			tiers["4K"] = "3840:1646 3840:2160 3840:2880 3840:3840 2880:3840 2160:3840"
		case "seedance2_5":
			f.shows, tiers["480p"] = 30, "992:432 854:480 752:560 640:640 560:752 480:854"
		}
		f.wide = sizes(tiers, "21:9", "16:9", "4:3", "1:1", "3:4", "9:16")
		return f
	}
	return family{}
}

// sizes lists the sizes of each tier by ratio.
func sizes(tiers map[string]string, ratios ...string) map[string]string {
	all := map[string]string{}
	for tier, list := range tiers {
		for i, size := range strings.Fields(list) {
			all[tier+" "+ratios[i]] = size
		}
	}
	return all
}

// klingSizes are the sizes of Kling 3.0, one tier a model.
func klingSizes(model string) map[string]string {
	switch {
	case strings.HasSuffix(model, "_4k"):
		return map[string]string{"4K 16:9": "3840:2160", "4K 9:16": "2160:3840", "4K 1:1": "2880:2880"}
	case strings.HasSuffix(model, "_pro"):
		return map[string]string{"1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920", "1080p 1:1": "1440:1440"}
	}
	return map[string]string{"720p 16:9": "1280:720", "720p 9:16": "720:1280", "720p 1:1": "960:960"}
}

// pictureSizes are those of pictures.
func pictureSizes() map[string]string {
	return map[string]string{
		"720p 1:1": "720:720", "720p 16:9": "1280:720", "720p 9:16": "720:1280", "720p 4:3": "960:720", "720p 3:4": "720:960",
		"720p 21:9": "1680:720",
		"1K 1:1":    "1024:1024", "1K 16:9": "1360:768", "1K 4:3": "1168:880", "1K 21:9": "1808:768",
		"1080p 1:1": "1080:1080", "1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920", "1080p 4:3": "1440:1080", "1080p 3:4": "1080:1440",
		"1080p 21:9": "2112:912",
	}
}

// size returns Runway's `ratio`: a size in pixels, required for every task. from reports whether
// there is a picture. Runway does not take the picture's shape unless the model can: without a
// ratio size uses the default ratio. A user's pixels must be among the model's sizes.
func (f family) size(w jobcall.Task, from bool) (string, bool) {
	if auto := f.auto[w.Tier]; from && f.auto != nil {
		return auto, auto != "" && w.Ratio == ""
	}
	ratio := w.Ratio
	if ratio == "" {
		ratio = "16:9"
		if w.Kind == upstream.KindImage {
			ratio = "1:1"
		}
	}
	asked := fmt.Sprintf("%d:%d", w.Width, w.Height)
	if f.wide == nil {
		return asked, w.Width > 0 && w.Height > 0
	}
	name := w.Tier + " " + ratio
	size := f.wide[name]
	if size == "" && from {
		size = f.framedOnly[name]
	}
	if w.Exact && size != asked {
		return "", false
	}
	return size, size != ""
}
