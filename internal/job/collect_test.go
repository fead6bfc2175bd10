package job

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// file returns a download that claims to have size bytes.
func file(raw []byte, size int) *jobcall.Download {
	return &jobcall.Download{Body: io.NopCloser(bytes.NewReader(raw)), Size: int64(size)}
}

// TestCollect checks the stored results, the charge and the number of downloads after failed downloads.
func TestCollect(t *testing.T) {
	t.Parallel()
	image, video := upstream.KindImage, upstream.KindVideo
	cut := func(raw []byte) *jobcall.Download { return file(raw[:len(raw)-5], len(raw)) }
	expired := func() *upstream.JobFailure { return later(errors.New("403: the link has expired")) }
	for _, tt := range []struct {
		name  string
		kind  string
		count int64
		// fetch answers download n; if nil, all downloads succeed.
		fetch       func(n int, r jobcall.Result) (*jobcall.Download, error)
		code        fault.Code
		data        int
		cost        money.Amount
		submissions [2]int
		fetches     int
		repolled    bool
	}{
		{name: "one interrupted download", kind: image, fetch: func(n int, _ jobcall.Result) (*jobcall.Download, error) {
			if n == 1 {
				return cut(picture()), nil
			}
			return nil, nil
		}, data: 1, cost: 3 * cent, submissions: [2]int{1, 0}, fetches: 2, repolled: true},
		{name: "one interrupted download without a length", kind: image, fetch: func(n int, _ jobcall.Result) (*jobcall.Download, error) {
			if n == 1 {
				return file(picture()[:20], -1), nil
			}
			return nil, nil
		}, data: 1, cost: 3 * cent, submissions: [2]int{1, 0}, fetches: 2, repolled: true},
		{name: "expired link", kind: video, fetch: func(_ int, r jobcall.Result) (*jobcall.Download, error) {
			if !strings.HasPrefix(r.Ref, "fresh") {
				return nil, expired()
			}
			return nil, nil
		}, data: 1, cost: 50 * cent, submissions: [2]int{1, 0}, fetches: 2, repolled: true},
		{name: "a clip with only failed downloads", kind: video,
			fetch: func(int, jobcall.Result) (*jobcall.Download, error) { return nil, expired() },
			code:  fault.ResultFetchFailed, submissions: [2]int{1, 0}, fetches: fetchTries, repolled: true},
		{name: "an image with only failed downloads", kind: image,
			fetch: func(int, jobcall.Result) (*jobcall.Download, error) { return nil, expired() },
			code:  fault.UpstreamError, submissions: [2]int{1, 1}, fetches: fetchTries, repolled: true},
		{name: "HTML instead of a clip", kind: video, fetch: func(int, jobcall.Result) (*jobcall.Download, error) {
			return file([]byte("<html>sorry</html>"), -1), nil
		}, code: fault.ResultFetchFailed, submissions: [2]int{1, 0}, fetches: fetchTries, repolled: true},
		{name: "an image instead of a clip", kind: video,
			fetch: func(int, jobcall.Result) (*jobcall.Download, error) { return file(picture(), -1), nil },
			code:  fault.ResultFetchFailed, submissions: [2]int{1, 0}, fetches: fetchTries, repolled: true},
		{name: "one failed image of three", kind: image, count: 3, fetch: func(_ int, r jobcall.Result) (*jobcall.Download, error) {
			if strings.HasSuffix(r.Ref, "/1") {
				return nil, expired()
			}
			return nil, nil
		}, data: 2, cost: 6 * cent, submissions: [2]int{1, 0}, fetches: 2 + fetchTries, repolled: true},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			first := &generator{fetch: tt.fetch}
			first.poll = func(n int, ticket string) (*jobcall.TaskStatus, error) {
				if n == 1 {
					return nil, nil
				}
				status := &jobcall.TaskStatus{Done: true}
				for i := range max(tt.count, 1) {
					status.Results = append(status.Results, jobcall.Result{Ref: "fresh/" + string('0'+rune(i))})
				}
				return status, nil
			}
			second := &generator{fetch: tt.fetch}
			c, n := twoLineCluster(t, url, first, second)
			id := c.submit(n, c.submission(n, map[string]string{image: "easel-1", video: "reel-1"}[tt.kind], max(tt.count, 1)))
			s := c.finish(n, id, tt.kind)
			if tt.code == "" && (s.Status != row.StatusSucceeded || len(s.Data) != tt.data) ||
				tt.code != "" && (s.Error == nil || s.Error.Code != string(tt.code)) {
				t.Errorf("the job is %+v with error %+v, want %d results or code %q", s, s.Error, tt.data, tt.code)
			}
			if got := [2]int{first.count(), second.count()}; got != tt.submissions {
				t.Errorf("the lines got %v submissions, want %v", got, tt.submissions)
			}
			if first.fetches != tt.fetches || (first.polls > 1) != tt.repolled {
				t.Errorf("%d downloads, want %d; %d polls, want repeated %t", first.fetches, tt.fetches, first.polls, tt.repolled)
			}
			c.audit(tt.cost)
			c.checkFiles(n, s)
		})
	}
}

// checkFiles checks that a job's links work and its other files are deleted.
func (c *cluster) checkFiles(n *testNode, s jobBody) {
	c.t.Helper()
	var public, others int
	err := c.db.View(c.t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COALESCE(SUM(CASE WHEN state = 'public' THEN 1 ELSE 0 END), 0), COALESCE(SUM(CASE WHEN state IN ('public', `+
			`'gone') THEN 0 ELSE 1 END), 0) FROM media_file`).Scan(&public, &others)
	})
	if err != nil || public != len(s.Data) || others != 0 {
		c.t.Errorf("%d public files for %d links and %d other files, want no others: %v", public, len(s.Data), others, err)
	}
	seen := map[string]bool{}
	for _, d := range s.Data {
		path := strings.TrimPrefix(d.URL, "http://127.0.0.1")
		w := httptest.NewRecorder()
		n.jobs.opts.Media.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != 200 || seen[d.URL] {
			c.t.Errorf("GET %s returned status %d, want 200 and no repeated link", d.URL, w.Code)
		}
		seen[d.URL] = true
	}
}
