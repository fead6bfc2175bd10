package admin

import (
	"testing"

	"tollgate/internal/fault"
)

// TestAnnouncements creates, changes, lists and deletes announcements.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		first := c.ok("POST", "/announcements", `{"title":"News","text":"a\nb"}`, "Idempotency-Key", "k")
		first.want(`{"title":"News","text":"a\nb","level":"info","state":"active","until":null}`)
		id := first.text("id")
		if got := c.ok("POST", "/announcements", `{"title":"News","text":"a\nb"}`, "Idempotency-Key", "k").text("id"); got != id {
			t.Errorf("the repetition created %s beside %s", got, id)
		}
		c.ok("POST", "/announcements", `{"title":"Later","level":"warning","from":4102444800,"until":4102448400}`).
			want(`{"level":"warning","state":"planned","from":4102444800,"until":4102448400}`)
		path := "/announcements/" + id
		c.ok("PATCH", path, `{"from":1700000000,"until":1700003600}`).
			want(`{"title":"News","state":"ended","from":1700000000,"until":1700003600}`)
		c.ok("PATCH", path, `{"title":"Old news"}`).want(`{"title":"Old news","text":"a\nb","until":1700003600}`)
		c.ok("PATCH", path, `{"until":null}`).want(`{"state":"active","until":null}`)
		if list, more := c.ok("GET", "/announcements?limit=1", "").list(); len(list) != 1 || !more || list[0]["title"] != "Later" {
			t.Errorf("the list is %v, more %v", list, more)
		}
		c.ok("DELETE", path, "").want(`{"deleted":true}`)
		c.do("DELETE", path, "").wantFault(fault.NotFound, "")
		c.do("PATCH", path, `{}`).wantFault(fault.NotFound, "")
		for body, param := range map[string]string{
			`{}`: "title", `{"title":7}`: "title", `{"title":"a","level":"loud"}`: "level", `{"title":"a","until":1}`: "until",
			`{"title":"a","from":"now"}`: "from", `{"title":"a","state":"active"}`: "state",
		} {
			c.do("POST", "/announcements", body).wantFault(fault.InvalidRequest, param)
		}
		var acts []string
		log, _ := c.ok("GET", "/log", "").list()
		for _, row := range log {
			acts = append(acts, row["act"].(string))
		}
		if len(acts) != 6 || acts[0] != "announcement.delete" || acts[1] != "announcement.change" || acts[5] != "announcement.create" {
			t.Errorf("the log has %q", acts)
		}
	})
}
