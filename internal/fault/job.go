package fault

import "net/http"

// invalidRequestType is the error.type if the user's input was at fault.
const invalidRequestType = "invalid_request_error"

// The codes of failed jobs (interface.md, Failed jobs). They occur in the error of a job, and in an
// HTTP error only if the client waited for the job. Jobs also use invalid_request and
// upstream_error.
const (
	ContentPolicy          Code = "content_policy"           // video: prompt, reference or result failed the provider's review
	ModerationBlocked      Code = "moderation_blocked"       // image: like content_policy
	ContentPolicyViolation Code = "content_policy_violation" // image: like content_policy, if the provider uses this code
	RenderFailed           Code = "render_failed"            // video: the provider rendered no clip
	InvalidMaterial        Code = "invalid_material"         // video: a problem with the input
	RenderTimeout          Code = "render_timeout"           // video: the provider gave up
	WaitTimeout            Code = "wait_timeout"             // video: no result within the line's longest wait
	UpstreamUnstable       Code = "upstream_unstable"        // video: the connection broke during rendering
	ResultFetchFailed      Code = "result_fetch_failed"      // video: rendered, but the result could not be fetched
)

// JobRow is the table row for one code of failed jobs.
type JobRow struct {
	Code Code
	Kind string // image, video or any
	Type string // error.type
	// Input is true if the user's input is at fault on every line. It is false for
	// invalid_request, because another line may accept the parameters.
	Input bool
	Retry Retry  // whether to submit the job again
	When  string // condition for the code, as part of a sentence
	// Message begins error.message: what happened and what to do.
	Message string
}

// jobTable maps the code of a failed job to its kind, its type (invalid_request_error if the user's
// input was at fault, else upstream_error) and the message for the user. The error reference is
// generated from jobTable.
var jobTable = []JobRow{
	{ContentPolicy, "video", invalidRequestType, true, RetryNever,
		"prompt, reference, or the generated picture or sound failed content review; `param` is `audio` when it was the sound",
		"The prompt, a reference or the result did not pass the provider's content review. Change the prompt or the " +
			"references."},
	{ModerationBlocked, "image", invalidRequestType, true, RetryNever,
		"the provider's safety system refused the prompt, a reference or the result",
		"The provider's safety system refused the prompt or a reference. Change them."},
	{ContentPolicyViolation, "image", invalidRequestType, true, RetryNever,
		"the provider's safety system refused the prompt, a reference or the result",
		"The provider's safety system refused the prompt or a reference. Change them."},
	{RenderFailed, "video", "upstream_error", false, RetryLater,
		"no clip came out, usually a one-off",
		"The provider produced no clip, which is usually a one-off. Submit the job again."},
	{InvalidMaterial, "video", invalidRequestType, true, RetryLater,
		"a problem with the input, often a one-off",
		"The provider had a problem with the input. Check the references, or submit the job again."},
	{RenderTimeout, "video", "upstream_error", false, RetryLater,
		"the provider took too long and gave up",
		"The provider took too long and gave up. Submit the job again."},
	{WaitTimeout, "video", "upstream_error", false, RetryLater,
		"no clip within the longest wait that the line allows",
		"No clip was ready within the longest wait. Submit the job again."},
	{UpstreamUnstable, "video", "upstream_error", false, RetryLater,
		"the connection broke during rendering",
		"The connection to the provider broke during rendering. Submit the job again."},
	{ResultFetchFailed, "video", "upstream_error", false, RetryLater,
		"rendered, but the clip could not be fetched and stored",
		"The clip was rendered but could not be fetched and stored. Submit the job again."},
	{InvalidRequest, "video", invalidRequestType, false, RetryNever,
		"no line accepts this combination of parameters",
		"The provider does not accept this combination of parameters. Change the request."},
	{UpstreamError, "any", "upstream_error", false, RetryLater,
		"any other failure: every line tried, 15 minutes waiting without a start, a refusal without a reason",
		"The job could not be done. Submit it again later."},
}

// Status returns the HTTP status of the error for a client that waited for the job.
func (r JobRow) Status() int {
	if r.Type == invalidRequestType {
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}

// JobTable returns a copy of the table of failed jobs, for tests and for generated documents.
func JobTable() []JobRow { return append([]JobRow(nil), jobTable...) }

// LookupJob returns the row of a job's code, or the row of upstream_error for any other code.
func LookupJob(code Code) JobRow {
	for _, row := range jobTable {
		if row.Code == code {
			return row
		}
	}
	return jobTable[len(jobTable)-1]
}
