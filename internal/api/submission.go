package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/wire"
	"tollgate/internal/wire/jobrequest"
)

// submission is a submission of images or a video.
type submission interface {
	Model() (string, error)
	Fingerprint(endpoint string) []byte
	Params(names []string, checkAddress func(address string) error) (json.RawMessage, error)
	// plan validates the fields and computes tier, count and cost.
	plan(m *catalog.Model) (catalog.Plan, error)
	// fields returns the fields after plan has validated them.
	fields() *jobrequest.Request
}

// imageSubmission is a submission of images.
type imageSubmission struct {
	*jobrequest.Image
	edit bool // the endpoint requires a reference
}

func (s imageSubmission) fields() *jobrequest.Request { return &s.Request }

func (s imageSubmission) plan(m *catalog.Model) (catalog.Plan, error) {
	if err := s.Check(s.edit); err != nil {
		return catalog.Plan{}, err
	}
	return m.PlanImage(catalog.ImageRequest{Size: s.Size, Resolution: s.Resolution, Ratio: s.Ratio, RatioParam: s.RatioParam, N: s.N,
		References: s.ReferenceCount, ReferencesParam: s.ReferencesParam, Choices: choices(&s.Request)})
}

// videoSubmission is a submission of a video.
type videoSubmission struct{ *jobrequest.Video }

func (s videoSubmission) fields() *jobrequest.Request { return &s.Request }

func (s videoSubmission) plan(m *catalog.Model) (catalog.Plan, error) {
	if err := s.Check(); err != nil {
		return catalog.Plan{}, err
	}
	if err := s.CheckNames(m.Params); err != nil {
		return catalog.Plan{}, err
	}
	plan, err := m.PlanVideo(catalog.VideoRequest{Resolution: s.Resolution, Ratio: s.Ratio, RatioParam: s.RatioParam,
		Duration: s.Duration, References: s.ReferenceCount, ReferencesParam: s.ReferencesParam, Choices: choices(&s.Request)})
	s.Audio = m.SoundSetting(s.Audio)
	return plan, err
}

// choices returns the optional features used by a submission.
func choices(s *jobrequest.Request) catalog.Choices {
	c := catalog.Choices{Audio: s.Audio, Params: s.Choices}
	for _, r := range s.References {
		if r.Role != "" {
			c.Roles = append(c.Roles, catalog.Role{Name: r.Role, Param: r.Param})
		}
	}
	return c
}

// jobEndpoint is an endpoint for submissions: the kind of its models and the parser of its bodies.
type jobEndpoint struct {
	kind  catalog.Kind
	parse func(contentType string, body []byte) (submission, error)
}

// imageGenerations answers POST /v1/images/generations.
func (s *server) imageGenerations(x *apiRequest) error {
	return s.submit(x, jobEndpoint{catalog.KindImage, func(_ string, body []byte) (submission, error) {
		r, err := jobrequest.OpenImage(body)
		return imageSubmission{r, false}, err
	}})
}

// imageEdits answers POST /v1/images/edits, also for multipart forms.
func (s *server) imageEdits(x *apiRequest) error {
	return s.submit(x, jobEndpoint{catalog.KindImage, func(contentType string, body []byte) (submission, error) {
		open := jobrequest.OpenImage
		if jobrequest.IsForm(contentType) {
			open = func(body []byte) (*jobrequest.Image, error) { return jobrequest.OpenForm(contentType, body) }
		}
		r, err := open(body)
		return imageSubmission{r, true}, err
	}})
}

// videoGenerations answers POST /v1/videos/generations.
func (s *server) videoGenerations(x *apiRequest) error {
	return s.submit(x, jobEndpoint{catalog.KindVideo, func(_ string, body []byte) (submission, error) {
		r, err := jobrequest.OpenVideo(body)
		return videoSubmission{r}, err
	}})
}

// checkedSubmission is a valid submission, or the response to an earlier one with the same
// Idempotency-Key.
type checkedSubmission struct {
	job.Submission
	fields        *jobrequest.Request
	earlierAnswer []byte   // the 202 body of the earlier submission
	ignored       []string // fields ignored by every line
}

// submit accepts a submission and answers it.
func (s *server) submit(x *apiRequest, endpoint jobEndpoint) error {
	j, err := s.acceptSubmission(x, endpoint)
	if err != nil {
		return err
	}
	return s.answerSubmission(x, j)
}

// acceptSubmission validates a submission and starts its job. A cached key may be outdated, so
// acceptSubmission reads the key from the database before it returns an error or an earlier answer, and before
// it fetches references. Otherwise admission compares the key's version with the database.
func (s *server) acceptSubmission(x *apiRequest, endpoint jobEndpoint) (accepted acceptedJob, err error) {
	var stored *references
	defer func() { stored.discard() }()
	for range maxChecks {
		var j checkedSubmission
		j, err = s.checkSubmission(x, endpoint)
		switch {
		case err != nil && (x.fresh || httpapi.IsInterrupted(err)):
			return accepted, err
		case err == nil && (x.fresh || j.earlierAnswer == nil && len(j.fields.References) == 0):
			accepted = acceptedJob{kind: endpoint.kind, format: j.fields.ResponseFormat()}
			if accepted.body, stored, err = s.startJob(x, &j, stored); !errors.Is(err, ledger.ErrKeyChanged) {
				accepted.replayed = err == nil && jobID(accepted.body) != j.Job
				return accepted, err
			}
		}
		if err := s.authenticate(x, true); err != nil {
			return accepted, err
		}
	}
	return accepted, fault.TryAgain(err)
}

// startJob fetches and stores the references of a submission, unless stored has them, and submits
// the job. It returns the body of the 202 (for a repetition, that of the first job) and the files
// that belong to no job yet. If it returns ledger.ErrKeyChanged, the caller must check the submission
// again.
func (s *server) startJob(x *apiRequest, j *checkedSubmission, stored *references) ([]byte, *references, error) {
	ctx := x.Request.Context()
	if stored == nil && j.earlierAnswer == nil && len(j.fields.References) > 0 {
		if err := s.checkAdmissible(ctx, j); err != nil {
			return nil, nil, err
		}
	}
	if j.earlierAnswer != nil {
		return j.earlierAnswer, stored, nil
	}
	var err error
	if stored == nil {
		if stored, err = s.fetchReferences(ctx, j.Account, j.fields); err != nil {
			return nil, nil, err
		}
	}
	j.Job, j.References, j.Mask = stored.job, stored.files, stored.mask
	j.Roles = j.fields.RolesOfReferences()
	x.loggedByLedger = true
	x.Span.Model(j.Model.ID)
	x.Span.Job(j.Job)
	body, err := s.Jobs.Submit(ctx, j.Submission)
	switch {
	case err == nil: // the files belong to the job, or Submit has discarded them
		if len(j.ignored) > 0 {
			x.Header().Set(call.IgnoredHeader, call.NamesOfFields(j.ignored))
		}
		return body, nil, nil
	case errors.Is(err, ledger.ErrKeyChanged):
		x.loggedByLedger = false
		return nil, stored, err
	}
	return nil, nil, err // Submit has discarded the files
}

// checkAdmissible returns the error that admission would return now. It is called before references
// are fetched and stored, so that a caller without balance or above the rate causes no work and no
// requests to other hosts. It sets j.earlierAnswer if it finds the job of an identical submission.
func (s *server) checkAdmissible(ctx context.Context, j *checkedSubmission) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	j.earlierAnswer, err = s.Jobs.Admissible(ctx, j.Submission)
	return err
}

// checkSubmission validates body, model and fields of a submission in the order of ARCHITECTURE.md,
// Order of checks. For a repetition of an accepted submission, only the key's permissions are
// checked again.
func (s *server) checkSubmission(x *apiRequest, endpoint jobEndpoint) (checkedSubmission, error) {
	var none checkedSubmission
	body, err := x.Body(s.MaxBody)
	if err != nil {
		return none, err
	}
	request, err := endpoint.parse(x.Request.Header.Get("Content-Type"), body)
	if err != nil {
		return none, err
	}
	if x.model, err = request.Model(); err != nil {
		return none, err
	}
	j := checkedSubmission{fields: request.fields()}
	j.Endpoint, j.Request, j.Received = x.Endpoint(), x.ID, x.Received
	j.Account, j.Key, j.KeyVersion = x.caller.Account, x.caller.Key, x.caller.Version
	// Faults of the header come after faults of the fields.
	keyErr := s.findEarlier(x, request, &j)
	if j.earlierAnswer != nil {
		return j, x.allows("model", x.model)
	}
	j.Snapshot = s.Catalog.Current()
	if j.Model, err = x.choose(j.Snapshot, wire.FormChat, func(m *catalog.Model) bool { return m.Kind == endpoint.kind }); err != nil {
		return none, err
	}
	if j.Plan, err = request.plan(j.Model); err != nil {
		return none, err
	}
	if err := s.checkFormat(x, endpoint.kind, j.fields.ResponseFormat()); err != nil {
		return none, err
	}
	j.Plan.Factor = x.caller.Prices.FactorOf(j.Model.ID)
	if j.Params, err = request.Params(j.Model.Params, s.Guard.CheckContent); err != nil {
		return none, err
	}
	j.ignored = j.fields.IgnoredFields(j.Model.Params)
	j.Prompt = j.fields.Prompt
	if j.fields.CallbackParam != "" {
		if _, err := s.Guard.Check(j.fields.Callback); err != nil {
			return none, fault.At(fault.InvalidCallbackURL, j.fields.CallbackParam, "%s", err)
		}
		j.Callback = j.fields.Callback
	}
	return j, keyErr
}

// findEarlier reads the Idempotency-Key and looks up its job.
func (s *server) findEarlier(x *apiRequest, request submission, j *checkedSubmission) error {
	key, err := idempotencyKey(x.Request.Header)
	if err != nil || key == "" {
		return err
	}
	ctx, cancel := x.DetachedContext(readTimeout)
	defer cancel()
	j.OnceKey, j.Fingerprint = key, request.Fingerprint(x.Endpoint())
	j.earlierAnswer, err = s.Jobs.FindOnce(ctx, j.Account, key, j.Fingerprint)
	return err
}

// maxIdempotencyKey bounds an Idempotency-Key, in characters.
const maxIdempotencyKey = 255

// idempotencyKey returns the Idempotency-Key of a request, empty without one.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	good := len(values) == 1 && len(key) >= 1 && len(key) <= maxIdempotencyKey
	for i := 0; good && i < len(key); i++ {
		good = key[i] > ' ' && key[i] < 0x7f
	}
	if !good {
		return "", fault.At(fault.InvalidRequest, "Idempotency-Key",
			"Send one Idempotency-Key of 1 to %d visible ASCII characters.", maxIdempotencyKey)
	}
	return key, nil
}
