package job

import (
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/job/row"
	"tollgate/internal/money"
	"tollgate/internal/upstream/chatcall"
)

const cent = money.USD / 100

// TestFlow checks jobs of both kinds from submission to charge, with and without tickets.
func TestFlow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, model, kind string
		blocks            bool
		count             int64
		cost              money.Amount
	}{
		{"images at once", "easel-1", "image", true, 2, 6 * cent},
		{"images by ticket", "easel-1", "image", false, 3, 9 * cent},
		{"a clip by ticket", "reel-1", "video", false, 1, 50 * cent},
	} {
		eachURL(t, tt.name, func(t *testing.T, url string) {
			m := &generator{blocks: tt.blocks}
			c := newCluster(t, url, map[string]chatcall.Adapter{"first": m, "second": &generator{}})
			n := c.node()
			id := c.submit(n, c.submission(n, tt.model, tt.count))
			s := c.await(n, tt.kind, id, final)
			if s.Status != row.StatusSucceeded || len(s.Data) != int(tt.count) || s.Data[0].URL == "" || s.Error != nil {
				t.Fatalf("the job is %+v, want succeeded with %d results", s, tt.count)
			}
			m.checkSubmissions(t, 1)
			if _, err := n.jobs.Body(t.Context(), c.account, map[string]string{"image": "video", "video": "image"}[tt.kind], id); fault.Of(err) ==
				nil || fault.Of(err).Code != fault.JobNotFound {
				t.Errorf("Body for the other kind: %v, want %s", err, fault.JobNotFound)
			}
			c.audit(tt.cost)
		})
	}
}
