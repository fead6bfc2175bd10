package job

import (
	"errors"
	"slices"
	"testing"

	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
)

// TestUserJobs checks that an account can list its own jobs by kind and status in pages and the
// jobs do not show lines.
func TestUserJobs(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		reached := make(chan struct{}, 1)
		first := &generator{}
		second := &generator{before: block("poll", reached)}
		c, n := twoLineCluster(t, url, first, second)
		other := c.withAccount(c.open(money.USD))
		succeeded := c.submit(n, c.submission(n, "easel-1", 1))
		foreign := other.start(n, "easel-1", 1)
		n.jobs.running.Wait()
		first.submit = failSubmit(0, upstream.ModerationFailure("video", "no", false))
		failed := c.start(n, "reel-1", 1)
		n.jobs.running.Wait()
		first.submit = failSubmit(0, upstream.Unsuitable("image", "no"))
		processing := c.start(n, "easel-1", 1)
		until(t, "the first line's refusal", func() bool { return len(c.order()) == 1 })
		n.step(n.jobs.Start)
		<-reached
		queued := c.submit(n, c.submission(n, "reel-1", 1))

		for _, tt := range []struct {
			name   string
			filter gallery.UserFilter
			want   []string
			more   bool
		}{
			{"all", gallery.UserFilter{Limit: 9}, []string{queued, processing, failed, succeeded}, false},
			{"a page of all", gallery.UserFilter{Limit: 2}, []string{queued, processing}, true},
			{"after a job", gallery.UserFilter{Limit: 9, After: processing}, []string{failed, succeeded}, false},
			{"images", gallery.UserFilter{Limit: 9, Kind: "image"}, []string{processing, succeeded}, false},
			{"a page of videos", gallery.UserFilter{Limit: 1, Kind: "video"}, []string{queued}, true},
			{"videos after a job", gallery.UserFilter{Limit: 9, Kind: "video", After: queued}, []string{failed}, false},
			{"queued", gallery.UserFilter{Limit: 9, Status: "queued"}, []string{queued}, false},
			{"processing", gallery.UserFilter{Limit: 9, Status: "processing"}, []string{processing}, false},
			{"videos in process", gallery.UserFilter{Limit: 9, Status: "processing", Kind: "video"}, nil, false},
			{"succeeded", gallery.UserFilter{Limit: 9, Status: "succeeded"}, []string{succeeded}, false},
			{"failed videos", gallery.UserFilter{Limit: 9, Status: "failed", Kind: "video"}, []string{failed}, false},
			{"no such status", gallery.UserFilter{Limit: 9, Status: "lost"}, nil, false},
		} {
			tt.filter.Account = c.account
			var ids []string
			var more bool
			c.viewTx(func(tx *store.Tx) error {
				list, m, err := gallery.ListTx(tx, tt.filter)
				more = m
				for _, e := range list {
					ids = append(ids, e.ID)
				}
				return err
			})
			if !slices.Equal(ids, tt.want) || more != tt.more {
				t.Errorf("%s: ListTx returned %v and more %t, want %v and %t", tt.name, ids, more, tt.want, tt.more)
			}
		}

		get := func(id string) (e gallery.UserJob) {
			c.viewTx(func(tx *store.Tx) (err error) {
				e, err = gallery.GetTx(tx, c.account, id)
				return err
			})
			list := []gallery.UserJob{e}
			if err := n.jobs.AddPositions(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			return list[0]
		}
		if e := get(succeeded); len(e.Links) != 1 || !e.Final() || e.Prompt != "a boat" || e.Cost != 30*money.USD/1000 || e.Tier != "1K" {
			t.Errorf("the succeeded job is %+v", e)
		}
		if e := get(failed); e.Code != "content_policy" || e.Message == "" || e.Cost != 0 || e.Seconds != 5 {
			t.Errorf("the failed job is %+v", e)
		}
		if e := get(processing); e.Status != "processing" || e.StartedMS == 0 || e.Final() || len(e.Steps) == 0 ||
			slices.ContainsFunc(e.Steps, func(s row.Step) bool { return s.Line != "" }) {
			t.Errorf("the processing job is %+v", e)
		}
		if e := get(queued); e.Status != "queued" || e.Ahead != 0 || e.WaitSeconds == 0 {
			t.Errorf("the queued job is %+v", e)
		}
		c.viewTx(func(tx *store.Tx) error {
			if _, err := gallery.GetTx(tx, c.account, foreign); !errors.Is(err, row.ErrNoJob) {
				t.Errorf("GetTx of another account's job: %v, want %v", err, row.ErrNoJob)
			}
			if _, err := gallery.GetTx(tx, c.account, "job_none"); !errors.Is(err, row.ErrNoJob) {
				t.Errorf("GetTx of an unknown job: %v, want %v", err, row.ErrNoJob)
			}
			all, err := gallery.CountTx(tx, c.account, "", 9)
			if err != nil || all != (gallery.Counts{Queued: 1, Processing: 1, Succeeded: 1, Failed: 1, Unfetched: 1}) {
				t.Errorf("CountTx of all jobs returned %+v and error %v, want one of each status", all, err)
			}
			images, err := gallery.CountTx(tx, c.account, "image", 1)
			if err != nil || images != (gallery.Counts{Processing: 1, Succeeded: 1, Unfetched: 1}) {
				t.Errorf("CountTx of images returned %+v and error %v, want one processing and one succeeded", images, err)
			}
			return nil
		})
	})
}
