package fakestudio

import (
	"maps"
	"slices"
	"testing"
)

// Fake is a fake provider of any protocol: a Studio with a base address.
type Fake interface {
	URL() string                             // base_url of a line
	Expect(behaviours ...Behaviour)          // see Studio
	Always(rule func(body []byte) Behaviour) // see Studio
	Submissions() []Submission               // see Studio
	AcceptedCount() int                      // see Studio
	Polls() int                              // see Studio
	PolledTasks() int                        // see Studio
	CancelledTickets() []string              // see Studio
	Close()                                  // see Studio
}

// Provider describes a provider of images and video, for tests that run with every provider.
type Provider struct {
	Name         string // in the catalog
	Open         func(t testing.TB) Fake
	Image, Video string // the provider's names of its models
	// Blocks is true if the answer to a submission contains the images. Single is true if a submission
	// creates only one image. Lone is true if a job creates only one image.
	Blocks, Single, Lone bool
	// Finds is true if the provider can find a submission whose answer was lost. Cancels is true if it
	// can cancel running tasks. Slow is true if it requires seconds between polls.
	Finds, Cancels, Slow bool
	// Inline is true if the answer to a poll contains the clip.
	Inline bool
	// Tier and Seconds are the only tier and length of clips. The zero values mean 720p and any length.
	Tier    string
	Seconds int
	// UnsafeImage and UnsafeVideo are the behaviours for unsafe content. Code is the error code of an
	// image job with unsafe content.
	UnsafeImage, UnsafeVideo Behaviour
	Code                     string
}

// Providers returns providers with images and clips for all tests of jobs.
func Providers() []Provider {
	fal := Failure(`{"status":422,"header":{"X-Fal-Retryable":"false"},` +
		`"body":{"detail":[{"loc":["body","prompt"],"msg":"flagged","type":"content_policy_violation"}]}}`)
	replicate := Failure(`{"status":"failed","error":"Rejected (E005)"}`)
	ark := Failure(`{"code":"InputTextSensitiveContentDetected","message":"flagged"}`)
	dashscope := Failure(`{"code":"DataInspectionFailed","message":"Input data may contain inappropriate content."}`)
	return []Provider{
		{Name: "fal", Open: func(t testing.TB) Fake { return NewFal(t) }, Image: "fal-ai/easel/dev", Video: "fal-ai/reel/text",
			Cancels:     true,
			UnsafeImage: fal, UnsafeVideo: fal, Code: "content_policy_violation"},
		{Name: "openai", Open: func(t testing.TB) Fake { return NewOpenAI(t) }, Image: "gpt-image-2", Video: "sora-2", Blocks: true,
			Cancels:     true,
			UnsafeImage: Refusal(400, `{"error":{"type":"image_generation_user_error","code":"moderation_blocked","message":"no"}}`),
			UnsafeVideo: Failure(`{"code":"moderation_blocked","message":"no"}`), Code: "moderation_blocked"},
		{Name: "replicate", Open: func(t testing.TB) Fake { return NewReplicate(t) }, Image: "owner/easel", Video: "owner/reel",
			Cancels:     true,
			UnsafeImage: replicate, UnsafeVideo: replicate, Code: "moderation_blocked"},
		{Name: "gemini", Open: func(t testing.TB) Fake { return NewGemini(t) }, Image: "gemini-nano-banana-2.1", Video: "veo-3.1-generate",
			Blocks: true, Single: true, UnsafeImage: Failure(`{"finishReason":"IMAGE_SAFETY"}`),
			UnsafeVideo: unsafeVeo(),
			Code:        "moderation_blocked"},
		{Name: "ark", Open: func(t testing.TB) Fake { return NewArk(t) }, Image: "seedream-4-0-250828", Video: "dreamina-seedance-2-0-260128",
			Blocks: true, Single: true, UnsafeImage: ark, UnsafeVideo: ark, Code: "moderation_blocked"},
		{Name: "dashscope", Open: func(t testing.TB) Fake { return NewDashScope(t) }, Image: "wan2.7-image", Video: "wan3.0-video",
			Blocks: true, UnsafeImage: dashscope, UnsafeVideo: dashscope, Code: "moderation_blocked"},
		{Name: "xai", Open: func(t testing.TB) Fake { return NewXAI(t) }, Image: "grok-imagine-image-2.0", Video: "grok-imagine-video",
			Blocks: true, UnsafeImage: Failure("all"),
			UnsafeVideo: Failure(`{"http":400,"error":"Generated video rejected by content moderation."}`), Code: "moderation_blocked"},
	}
}

// unsafeVeo returns the behaviour of an operation of Veo with an unsafe prompt.
func unsafeVeo() Behaviour {
	return Failure(`{"error":{"code":3,"message":"The prompt could not be submitted. It may violate our policies."}}`)
}

// Vendors returns further providers, without some of the features of Providers. Video is empty if a
// provider has no clips.
func Vendors() []Provider {
	bfl, blocked := Failure(`{"status":"Request Moderated"}`), "moderation_blocked"
	luma, kling := Failure(`{"state":"failed","failure_code":"content_moderated"}`), Failure("Failure to pass the risk control system")
	runway := Failure(`{"failureCode":"SAFETY.INPUT.TEXT","failure":"no"}`)
	return []Provider{
		{Name: "bfl", Open: func(t testing.TB) Fake { return NewBFL(t) }, Image: "flux-2-pro", Video: "flux-3-video", Single: true,
			UnsafeImage: bfl, UnsafeVideo: bfl, Code: blocked},
		{Name: "stability", Open: func(t testing.TB) Fake { return NewStability(t) }, Image: "ultra", Blocks: true, Single: true,
			UnsafeImage: Refusal(403, `{"id":"1","name":"content_moderation","errors":["no"]}`), Code: blocked},
		{Name: "ideogram", Open: func(t testing.TB) Fake { return NewIdeogram(t) }, Image: "ideogram-4-5",
			UnsafeImage: Failure(`{"status":"failed","failure_reason":"The prompt is unsafe"}`), Code: blocked},
		{Name: "recraft", Open: func(t testing.TB) Fake { return NewRecraft(t) }, Image: "recraftv4_1", Blocks: true,
			UnsafeImage: Refusal(400, `{"code":"invalid_request_parameter","message":"did not pass moderation"}`), Code: blocked},
		{Name: "luma", Open: func(t testing.TB) Fake { return NewLuma(t) }, Image: "uni-1", Video: "ray-3.2", Single: true,
			Seconds: 10, UnsafeImage: luma, UnsafeVideo: luma, Code: blocked},
		{Name: "minimax", Open: func(t testing.TB) Fake { return NewMiniMax(t) }, Image: "image-01", Video: "MiniMax-H3", Blocks: true,
			Slow: true, Tier: "768p", Seconds: 6, UnsafeImage: Failure(`{"status_code":1026,"status_msg":"no"}`),
			UnsafeVideo: Failure(`{"code":"1026","message":"no"}`), Code: blocked},
		{Name: "kling", Open: func(t testing.TB) Fake { return NewKling(t) }, Image: "kling-v3", Video: "kling-3.0", Finds: true,
			UnsafeImage: kling, UnsafeVideo: kling, Code: blocked},
		{Name: "vertex", Open: func(t testing.TB) Fake { return NewVertex(t) }, Image: "gemini-3-pro-image", Video: "veo-3.1-generate-001",
			Blocks: true, Single: true, Inline: true, UnsafeImage: Failure(`{"finishReason":"IMAGE_SAFETY"}`),
			UnsafeVideo: unsafeVeo(), Code: blocked},
		{Name: "runway", Open: func(t testing.TB) Fake { return NewRunway(t) }, Image: "gen4_image", Video: "gen4.5", Lone: true, Cancels: true,
			Slow: true, UnsafeImage: runway, UnsafeVideo: runway, Code: blocked},
	}
}

// All returns Providers and Vendors.
func All() []Provider { return append(Providers(), Vendors()...) }

// Kinds returns the kinds of jobs of the provider.
func (p Provider) Kinds() []string {
	if p.Video == "" {
		return []string{"image"}
	}
	return []string{"image", "video"}
}

// Unsafe returns the behaviour for unsafe content, and the error code of the job.
func (p Provider) Unsafe(kind string) (Behaviour, string) {
	if kind == "video" {
		return p.UnsafeVideo, "content_policy"
	}
	return p.UnsafeImage, p.Code
}

// ProviderOf returns the provider with a name.
func ProviderOf(t testing.TB, name string) Provider {
	t.Helper()
	all := All()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no provider %s", name)
	}
	return all[i]
}

// Model returns the provider's name of its model for a kind of jobs.
func (p Provider) Model(kind string) string {
	if kind == "video" {
		return p.Video
	}
	return p.Image
}

// JobLine returns a line of a provider for models of a kind, with the members of more. Its API key
// is the variable FAILING_LINE_KEY.
func (p Provider) JobLine(id string, s Fake, kind string, more map[string]any, models ...string) map[string]any {
	vendorIDs := map[string]string{}
	for _, model := range models {
		vendorIDs[model] = p.Model(kind)
	}
	l := map[string]any{"id": id, "provider": p.Name, "base_url": s.URL(), "api_key": "${FAILING_LINE_KEY}", "models": vendorIDs,
		"timeouts": map[string]any{"total": "60s"}}
	maps.Copy(l, more)
	return l
}
