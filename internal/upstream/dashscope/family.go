package dashscope

import (
	"regexp"
	"strconv"
	"strings"

	"tollgate/internal/wire/jobrequest"
)

// The endpoints, by the values of the options image_endpoint and video_endpoint.
const (
	multimodal   = "multimodal-generation" // pictures in the response, requested by messages
	messagesTask = "image-generation"      // pictures as a task, requested by messages
	textTask     = "text2image"            // pictures from a text as a task
	imageTask    = "image2image"           // pictures from pictures as a task
	clipTask     = "video-generation"      // clips
	framesTask   = "image2video"           // clips between two frames, for older models
)

// path returns the path of an endpoint below the base address.
func path(endpoint string) []string {
	last := "generation"
	switch endpoint {
	case textTask, imageTask:
		last = "image-synthesis"
	case clipTask, framesTask:
		last = "video-synthesis"
	}
	return []string{"services", "aigc", endpoint, last}
}

// The request format changed from release to release. A model not known to be old counts as new,
// because the newest models share one format. A line's options can override the choice.
var (
	wan       = regexp.MustCompile(`^wanx?(\d+)\.(\d+)`)
	oldQwen   = regexp.MustCompile(`^qwen-image(?:-plus(?:-.*)?)?$`)
	inPixels  = regexp.MustCompile(`^(?:qwen-image(?:$|-[a-z]|-[12]\.)|wan2\.6-t2i|z-image)`)
	tierNamed = regexp.MustCompile(`^[1-9]K$`)
)

// wanOf returns the release of a Wan model as one number (2.6 is 206), or 0 for other models and
// for models from before the numbering. ok reports whether model is a Wan model.
func wanOf(model string) (release int, ok bool) {
	m := wan.FindStringSubmatch(model)
	if m == nil {
		return 0, strings.HasPrefix(model, "wanx")
	}
	major, _ := strconv.Atoi(m[1]) // only digits; a number too long is 0, an old release
	minor, _ := strconv.Atoi(m[2])
	return major*100 + minor, true
}

// imageEndpoint returns the endpoint for submissions of a model's pictures.
func (a *Adapter) imageEndpoint(model string) string {
	if a.options.imageEndpoint != "" {
		return a.options.imageEndpoint
	}
	release, ok := wanOf(model)
	switch {
	case ok && release < 206 && (strings.Contains(model, "i2i") || strings.Contains(model, "edit")):
		return imageTask
	case ok && release < 206, oldQwen.MatchString(model):
		return textTask
	case ok && release < 207:
		return messagesTask
	}
	return multimodal
}

// videoEndpoint returns the endpoint for submissions of a model's clips.
func (a *Adapter) videoEndpoint(model string) string {
	switch {
	case a.options.videoEndpoint != "":
		return a.options.videoEndpoint
	case strings.Contains(model, "kf2v"):
		return framesTask
	}
	return clipTask
}

// dialect is the format of references and size for a clip model.
type dialect int

const (
	inMedia   dialect = iota // input.media with types; resolution and ratio
	inAddress                // one picture in input.img_url, which determines the ratio
	inFrames                 // input.first_frame_url and last_frame_url, which determine the ratio
	inList                   // input.reference_urls; size in pixels
	inText                   // no references; size in pixels
)

// dialectOf returns the dialect of a clip model.
func dialectOf(model string) dialect {
	release, ok := wanOf(model)
	switch {
	case strings.Contains(model, "kf2v"):
		return inFrames
	case !ok || release >= 207:
		return inMedia
	case strings.Contains(model, "r2v"):
		return inList
	case strings.Contains(model, "t2v"):
		return inText
	}
	return inAddress
}

// rolesOf returns the reference roles supported by a clip model.
func rolesOf(model string) []string {
	switch dialectOf(model) {
	case inAddress:
		return []string{jobrequest.FirstFrame}
	case inFrames:
		return []string{jobrequest.FirstFrame, jobrequest.LastFrame}
	case inList:
		return []string{jobrequest.Subject}
	case inText:
		return nil
	}
	switch {
	case strings.Contains(model, "t2v"):
		return nil
	case strings.Contains(model, "i2v"):
		return []string{jobrequest.FirstFrame, jobrequest.LastFrame}
	case strings.Contains(model, "r2v"), isEditModel(model):
		return []string{jobrequest.Subject}
	}
	return jobrequest.Roles()
}

// hasAudioParam reports whether a clip model has a setting for sound. Wan 2.7 and models before Wan 2.6
// do not have the setting.
func hasAudioParam(model string) bool {
	release, ok := wanOf(model)
	return !ok || release == 206 || release >= 300
}

// pixels returns the size of older clip models for a tier and ratio.
func pixels(tier, ratio string) string {
	switch tier + " " + ratio {
	case "480P 16:9":
		return "832*480"
	case "480P 9:16":
		return "480*832"
	case "480P 1:1":
		return "624*624"
	case "720P 16:9":
		return "1280*720"
	case "720P 9:16":
		return "720*1280"
	case "720P 1:1":
		return "960*960"
	case "720P 4:3":
		return "1088*832"
	case "720P 3:4":
		return "832*1088"
	case "1080P 16:9":
		return "1920*1080"
	case "1080P 9:16":
		return "1080*1920"
	case "1080P 1:1":
		return "1440*1440"
	case "1080P 4:3":
		return "1632*1248"
	case "1080P 3:4":
		return "1248*1632"
	}
	return ""
}
