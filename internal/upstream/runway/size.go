package runway

import (
	"fmt"
	"strings"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// family holds the features common to a group of models.
type family struct {
	needsPicture   bool // does not accept text alone
	lastFrame      bool // accepts a last frame
	seed           bool
	sound          bool // has a setting for sound
	negativePrompt bool // accepts a negative prompt
	maxPictures    int  // maximum number of reference pictures; if not 0, also accepts reference videos
	onlyEdits      bool // only edits videos
	// sizes holds the sizes by tier and ratio, frameSizes further sizes for tasks with a first
	// frame, and autoSizes the sizes by tier for clips with the shape of the first frame. If all
	// three are nil, the pixels of tier and ratio are sent.
	sizes, frameSizes, autoSizes map[string]string
}

// familyOf returns the family for the model's ID. For an unknown model, it returns the features
// common to all models: pixels and a first frame.
func familyOf(kind, model string) family {
	if kind == upstream.KindImage {
		return family{seed: strings.HasPrefix(model, "gen4_image"), needsPicture: model == "gen4_image_turbo", sizes: pictureSizes()}
	}
	switch {
	case strings.HasPrefix(model, "gen4"):
		return family{seed: true, needsPicture: model == "gen4_turbo", sizes: map[string]string{"720p 16:9": "1280:720", "720p 9:16": "720:1280"},
			frameSizes: map[string]string{"720p 4:3": "1104:832", "720p 1:1": "960:960", "720p 3:4": "832:1104", "720p 21:9": "1584:672"}}
	case strings.HasPrefix(model, "veo"):
		return family{lastFrame: true, sound: true, negativePrompt: true, seed: true, sizes: map[string]string{
			"720p 16:9": "1280:720", "720p 9:16": "720:1280", "1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920"}}
	case strings.HasPrefix(model, "kling_4"):
		return family{lastFrame: true, autoSizes: map[string]string{"720p": "auto_720p", "1080p": "auto_1080p"}, sizes: map[string]string{
			"720p 16:9": "1280:720", "720p 9:16": "720:1280", "720p 1:1": "940:940", "720p 21:9": "1460:624",
			"1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920", "1080p 1:1": "1440:1440", "1080p 21:9": "2200:940"}}
	case strings.HasPrefix(model, "kling3.0_"), strings.HasPrefix(model, "klingO3_"):
		return family{lastFrame: true, sound: true, sizes: klingSizes(model)}
	}
	return referenceFamily(model)
}

// referenceFamily returns the family of a model for clips from reference pictures and videos, or of
// the model for editing videos.
func referenceFamily(model string) family {
	switch {
	case model == "aleph2":
		return family{onlyEdits: true, seed: true}
	case strings.HasPrefix(model, "wan3"):
		return family{lastFrame: true, sound: true, maxPictures: 10,
			autoSizes: map[string]string{"480p": "auto_480p", "720p": "auto_720p", "1080p": "auto_1080p"},
			sizes: sizesByRatio(map[string]string{"480p": "832:480 720:544 624:624 544:720 480:832",
				"720p": "1280:720 1104:832 960:960 832:1104 720:1280", "1080p": "1920:1080 1648:1248 1440:1440 1248:1648 1080:1920"},
				"16:9", "4:3", "1:1", "3:4", "9:16")}
	case strings.HasPrefix(model, "seedance2"):
		f := family{lastFrame: true, sound: true, seed: true, maxPictures: 9}
		tiers := map[string]string{"480p": "992:432 864:496 752:560 640:640 560:752 496:864",
			"720p": "1470:630 1280:720 1112:834 960:960 834:1112 720:1280"}
		if model == "seedance2" || model == "seedance2_5" {
			tiers["1080p"] = "2206:946 1920:1080 1664:1248 1440:1440 1248:1664 1080:1920"
		}
		switch model {
		case "seedance2":
			tiers["4K"] = "3840:1646 3840:2160 3840:2880 3840:3840 2880:3840 2160:3840"
		case "seedance2_5":
			f.maxPictures, tiers["480p"] = 30, "992:432 854:480 752:560 640:640 560:752 480:854"
		}
		f.sizes = sizesByRatio(tiers, "21:9", "16:9", "4:3", "1:1", "3:4", "9:16")
		return f
	}
	return family{}
}

// sizesByRatio returns the sizes by tier and ratio. tiers has the sizes of each tier in the order
// of ratios.
func sizesByRatio(tiers map[string]string, ratios ...string) map[string]string {
	all := map[string]string{}
	for tier, list := range tiers {
		for i, size := range strings.Fields(list) {
			all[tier+" "+ratios[i]] = size
		}
	}
	return all
}

// klingSizes returns the sizes of a model of Kling 3.0, which has one tier.
func klingSizes(model string) map[string]string {
	switch {
	case strings.HasSuffix(model, "_4k"):
		return map[string]string{"4K 16:9": "3840:2160", "4K 9:16": "2160:3840", "4K 1:1": "2880:2880"}
	case strings.HasSuffix(model, "_pro"):
		return map[string]string{"1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920", "1080p 1:1": "1440:1440"}
	}
	return map[string]string{"720p 16:9": "1280:720", "720p 9:16": "720:1280", "720p 1:1": "960:960"}
}

// pictureSizes returns the sizes of pictures.
func pictureSizes() map[string]string {
	return map[string]string{
		"720p 1:1": "720:720", "720p 16:9": "1280:720", "720p 9:16": "720:1280", "720p 4:3": "960:720", "720p 3:4": "720:960",
		"720p 21:9": "1680:720",
		"1K 1:1":    "1024:1024", "1K 16:9": "1360:768", "1K 4:3": "1168:880", "1K 21:9": "1808:768",
		"1080p 1:1": "1080:1080", "1080p 16:9": "1920:1080", "1080p 9:16": "1080:1920", "1080p 4:3": "1440:1080", "1080p 3:4": "1080:1440",
		"1080p 21:9": "2112:912",
	}
}

// size returns the value of Runway's field `ratio`: a size in pixels, required for every task. It
// returns false if the model has no such size. hasPicture is true if the task has a first picture.
// Only models with autoSizes can use the shape of the picture; for the others, size uses the default
// ratio if the task has none. The user's pixels must be among the model's sizes.
func (f family) size(task jobcall.Task, hasPicture bool) (string, bool) {
	if auto := f.autoSizes[task.Tier]; hasPicture && f.autoSizes != nil {
		return auto, auto != "" && task.Ratio == ""
	}
	ratio := task.Ratio
	if ratio == "" {
		ratio = "16:9"
		if task.Kind == upstream.KindImage {
			ratio = "1:1"
		}
	}
	requested := fmt.Sprintf("%d:%d", task.Width, task.Height)
	if f.sizes == nil {
		return requested, task.Width > 0 && task.Height > 0
	}
	name := task.Tier + " " + ratio
	size := f.sizes[name]
	if size == "" && hasPicture {
		size = f.frameSizes[name]
	}
	if task.Exact && size != requested {
		return "", false
	}
	return size, size != ""
}
