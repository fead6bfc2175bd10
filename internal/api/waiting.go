package api

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/wire/jobrequest"
)

// preference is the header Prefer of a request (RFC 7240).
type preference struct {
	wait  *time.Duration // nil without a valid wait
	async bool           // respond-async
}

// longestPreference bounds the wait of a Prefer header before the operator's bound applies.
const longestPreference = 24 * time.Hour

// readPreference reads the header Prefer. As RFC 7240 requires, it ignores unknown and malformed
// preferences and repetitions.
func readPreference(h http.Header) (p preference) {
	for _, line := range h.Values("Prefer") {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			name, value, _ := strings.Cut(part, "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				p.async = true
			case "wait":
				seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
				if err == nil && p.wait == nil {
					wait := min(time.Duration(seconds)*time.Second, longestPreference)
					p.wait = &wait
				}
			}
		}
	}
	return p
}

// waitOf returns how long a submission may wait for its result, at most the operator's bound. The
// header Prefer decides, or else the key's setting. The console polls, so the setting does not apply
// to its requests. Only images have a response for clients that wait.
func (s *server) waitOf(x *apiRequest, kind catalog.Kind) time.Duration {
	p := readPreference(x.Request.Header)
	_, console := x.Request.Context().Value(sessionKey{}).(sessionKey)
	switch {
	case kind != catalog.KindImage:
		return 0
	case p.wait != nil:
		return min(*p.wait, s.PictureWait)
	case p.async, console, !x.caller.WaitForPictures:
		return 0
	}
	return s.PictureWait
}

// checkFormat refuses base64 for a submission that does not wait, because a job has links.
func (s *server) checkFormat(x *apiRequest, kind catalog.Kind, format string) error {
	if kind != catalog.KindImage || format != jobrequest.FormatBase64 || s.waitOf(x, kind) > 0 {
		return nil
	}
	text := "A job has links to its images and no base64. Leave `{param}` out."
	if s.PictureWait > 0 {
		text = "A job has links to its images and no base64. Leave `{param}` out, or wait for the images: " +
			"send the header `Prefer: wait=60`, or use a key that waits for pictures."
	}
	return fault.At(fault.InvalidRequest, "response_format", "%s", text)
}

// acceptedJob is an accepted submission.
type acceptedJob struct {
	body     []byte // of the 202
	kind     catalog.Kind
	replayed bool   // the job of an earlier submission with the same Idempotency-Key
	format   string // of the images for a client that waits
}

// answerSubmission answers an accepted submission: with the images if the client waits for them and
// they are ready in time, else with 202. A job that fails while its client waits is answered with
// its error. The job goes on if its client leaves.
//
// Some clients read only links, some only base64, and not all of them ask for what they read. So a
// client that does not name a format gets both.
func (s *server) answerSubmission(x *apiRequest, j acceptedJob) error {
	x.DropBody() // a waiting client needs no memory for its body
	id := jobID(j.body)
	h := x.Header()
	h.Set("Location", row.Path(string(j.kind), id))
	if j.replayed {
		h.Set("Idempotent-Replayed", "true")
	}
	result := s.await(x, id, s.waitOf(x, j.kind))
	switch {
	case result == nil:
	case result.Failure != nil:
		x.loggedByLedger = true
		return result.Failure
	case j.format != jobrequest.FormatURL && s.writeImages(x, result, j.format == ""):
		return nil
	case j.format != jobrequest.FormatBase64:
		write(x, http.StatusOK, "application/json", linksBody(result))
		return nil
	}
	h.Set("Retry-After", strconv.Itoa(pollSeconds(j.kind)))
	write(x, http.StatusAccepted, "application/json", j.body)
	return nil
}

// await waits for a job. It returns nil if the job has not ended in time.
func (s *server) await(x *apiRequest, id string, wait time.Duration) *row.AwaitedResult {
	if wait == 0 {
		return nil
	}
	if readPreference(x.Request.Header).wait != nil {
		x.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", int(wait.Seconds())))
	}
	ctx, cancel := context.WithTimeout(x.Request.Context(), wait)
	defer cancel()
	return s.Jobs.Await(ctx, x.caller.Account, id)
}

// pollSeconds is the recommended time between two polls of a job (interface.md, Jobs).
func pollSeconds(kind catalog.Kind) int {
	if kind == catalog.KindVideo {
		return 5
	}
	return 2
}

// jobID returns the id in the body of a 202.
func jobID(body []byte) string {
	var b struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(body, &b) // our own body
	return b.ID
}

// linksBody returns the images of a job in OpenAI's shape, as links.
func linksBody(r *row.AwaitedResult) []byte {
	body := fmt.Appendf(nil, `{"created":%d,"data":[`, r.Created)
	for i, link := range r.Links {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(body, `{"url":`...), row.Render(link)...)
		body = append(body, '}')
	}
	return fmt.Appendf(body, `],"usage":%s}`, r.Usage)
}

// writeImages answers with the images of a job in OpenAI's shape, in base64 and, if withLinks, also
// as links. The images go from the media store to the client in small parts. writeImages writes
// nothing and returns false if the first image cannot be read.
func (s *server) writeImages(x *apiRequest, r *row.AwaitedResult, withLinks bool) bool {
	ctx := x.Request.Context()
	out := bufio.NewWriterSize(x, 32<<10) // keeps its first error
	for i, link := range r.Links {
		file, _, _, err := s.Media.OpenLink(ctx, link)
		if err == nil && file == nil {
			err = fmt.Errorf("the image %s is missing", link)
		}
		if err != nil && i == 0 {
			s.Log.Error("api: the images of a job cannot be read for its client", "request", x.ID, "error", err)
			return false
		}
		if err == nil {
			if i == 0 {
				x.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(out, `{"created":%d,"data":[{`, r.Created)
			} else {
				_, _ = out.WriteString(",{")
			}
			if withLinks {
				_, _ = fmt.Fprintf(out, `"url":%s,`, row.Render(link))
			}
			err = copyBase64(out, file)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			x.Abort(err)
		case err != nil: // the client has disconnected
			return true
		}
	}
	_, _ = fmt.Fprintf(out, `],"usage":%s}`, r.Usage)
	_ = out.Flush() // the client may have disconnected
	return true
}

// copyBase64 writes the file as the member b64_json and ends the JSON object. It closes the file.
func copyBase64(out *bufio.Writer, file io.ReadCloser) error {
	defer file.Close()
	_, _ = out.WriteString(`"b64_json":"`)
	encoder := base64.NewEncoder(base64.StdEncoding, out)
	if _, err := io.Copy(encoder, file); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	_, err := out.WriteString(`"}`)
	return err
}
