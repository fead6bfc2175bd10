package job

import (
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/upstream/chatcall"
)

const cent = money.USD / 100

// TestFlow runs jobs of both kinds from submission to charge, with and without tickets.
func TestFlow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, model, kind string
		blocks            bool
		count             int64
		cost              money.Amount
	}{
		{"images at once", "easel-1", "image", true, 2, 6 * cent},
		{"images by ticket", "easel-1", "image", false, 3, 9 * cent},
		{"a clip by ticket", "reel-1", "video", false, 1, 50 * cent},
	} {
		eachURL(t, c.name, func(t *testing.T, url string) {
			m := &generator{blocks: c.blocks}
			h := newCluster(t, url, map[string]chatcall.Adapter{"first": m, "second": &generator{}})
			n := h.node()
			job := h.submit(n, h.submission(n, c.model, c.count))
			s := h.await(n, c.kind, job, final)
			if s.Status != row.StatusSucceeded || len(s.Data) != int(c.count) || s.Data[0].URL == "" || s.Error != nil {
				t.Fatalf("%+v", s)
			}
			m.checkSubmissions(t, 1)
			if _, err := n.jobs.Body(t.Context(), h.account, map[string]string{"image": "video", "video": "image"}[c.kind], job); fault.Of(err) ==
				nil || fault.Of(err).Code != fault.JobNotFound {
				t.Errorf("as the other kind: %v", err)
			}
			h.audit(c.cost)
		})
	}
}
