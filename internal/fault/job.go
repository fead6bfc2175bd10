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

// JobRow is what the table says of one code of failed jobs.
type JobRow struct {
	Code Code
	Kind string // image, video or any
	Type string // error.type
	// Input says that the code blames what the user sent whatever line the job
	// goes to. The parameters of invalid_request may suit another line.
	Input bool
}

// jobTable is the one place that ties a failed job's code to its kind and type:
// invalid_request_error where the user's input was at fault, else upstream_error.
var jobTable = []JobRow{
	{ContentPolicy, "video", "invalid_request_error", true},
	{ModerationBlocked, "image", "invalid_request_error", true},
	{ContentPolicyViolation, "image", "invalid_request_error", true},
	{RenderFailed, "video", "upstream_error", false},
	{InvalidMaterial, "video", "invalid_request_error", true},
	{RenderTimeout, "video", "upstream_error", false},
	{WaitTimeout, "video", "upstream_error", false},
	{UpstreamUnstable, "video", "upstream_error", false},
	{ResultFetchFailed, "video", "upstream_error", false},
	{InvalidRequest, "video", "invalid_request_error", false},
	{UpstreamError, "any", "upstream_error", false},
}

// JobTable returns a copy of the table of failed jobs, for tests and for
// documents made from it.
func JobTable() []JobRow { return append([]JobRow(nil), jobTable...) }

// LookupJob returns the row of a code; that of upstream_error for one that is
// none of a job's.
func LookupJob(code Code) JobRow {
	for _, row := range jobTable {
		if row.Code == code {
			return row
		}
	}
	return jobTable[len(jobTable)-1]
}
