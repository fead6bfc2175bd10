package fault

// The codes of failed jobs (interface.md, Failed jobs). They stand in a job's
// error, never on an HTTP error of their own. invalid_request and
// upstream_error are codes of jobs too.
const (
	ContentPolicy          Code = "content_policy"           // video: prompt, reference or result failed the provider's review
	ModerationBlocked      Code = "moderation_blocked"       // image: the same
	ContentPolicyViolation Code = "content_policy_violation" // image: the same, where the provider calls it so
	RenderFailed           Code = "render_failed"            // video: no clip came out
	InvalidMaterial        Code = "invalid_material"         // video: a problem with the input
	RenderTimeout          Code = "render_timeout"           // video: the provider gave up
	WaitTimeout            Code = "wait_timeout"             // video: no clip within the line's longest wait
	UpstreamUnstable       Code = "upstream_unstable"        // video: the connection broke during rendering
	ResultFetchFailed      Code = "result_fetch_failed"      // video: rendered, but the clip could not be got
)

// JobType is error.type of a failed job: invalid_request_error where the user's
// input was at fault, else upstream_error (readings: Jobs).
func JobType(code Code) string {
	switch code {
	case ContentPolicy, ModerationBlocked, ContentPolicyViolation, InvalidMaterial, InvalidRequest:
		return "invalid_request_error"
	}
	return "upstream_error"
}
