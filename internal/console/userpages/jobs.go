package userpages

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// jobsPage is the gallery of an account's jobs.
type jobsPage struct {
	Unfetched *ui.Notice // results not fetched yet
	Kinds     ui.Tabs
	Gallery   galleryFragment
	Empty     *ui.EmptyState
	Samples   ui.Tabs // prompts to begin with
	Pager     ui.Pager
	Retention ui.Words
}

// galleryFragment is the gallery. It is updated while jobs run.
type galleryFragment struct {
	Address      string   // address of its updates
	Running      bool     // a job has not ended
	Announcement ui.Words // read out by screen readers after a change
	Tabs         ui.Tabs
	Tiles        ui.Tiles
	unfetched    int64 // jobs with results not fetched yet
}

// jobPage shows one job.
type jobPage struct {
	Title  ui.Words
	Again  ui.Link
	Result jobFragment
	Prompt ui.Text
	Facts  ui.Facts
}

// jobFragment is the state and the results of a job. It is updated while the job runs.
type jobFragment struct {
	Address      string
	Running      bool
	Announcement ui.Words
	State        ui.Badge
	Text         ui.Text
	Failure      *ui.Notice
	Results      []result
	Steps        ui.Timeline
	Receipt      ui.Facts
}

// result is a picture or a clip of a job.
type result struct {
	Link, Alt string
	Clip      bool
	Weight    string // size of a picture shown only on request; otherwise empty
	Copy      ui.CopyField
	Until     ui.Moment
}

const (
	jobsPerPage = 12
	// maxTally is the highest count shown for a state.
	maxTally = 1000
	// shownBytes bounds the total size of a page's pictures, in bytes. Further pictures are shown on request.
	shownBytes = 150 << 10
	// altLength is the maximum length of a picture's description in characters. The description is
	// the beginning of the prompt.
	altLength = 120
)

// jobFilterOf reads the selection of jobs from the page's address. Unknown values are ignored.
func jobFilterOf(v *page.Visit) gallery.UserFilter {
	s := gallery.UserFilter{Account: v.Account(), Limit: jobsPerPage, After: v.Query("after")}
	if kind := v.Query("kind"); kind == media.KindImage || kind == media.KindVideo {
		s.Kind = kind
	}
	for _, option := range append(show.JobStates(), ui.Option{Value: gallery.Unfetched}) {
		if option.Value == v.Query("status") {
			s.Status = option.Value
		}
	}
	return s
}

func (c *console) listJobs(v *page.Visit) (page.Responder, error) {
	s := jobFilterOf(v)
	g, last, err := c.gallery(v, s)
	if err != nil {
		return nil, err
	}
	content := jobsPage{Gallery: g, Unfetched: unfetchedNotice(g.unfetched, s), Pager: v.Pager("/jobs", last != "", last)}
	content.Retention = ui.Sayf("Jobs are listed for %s after their end. Their files work for %s.",
		days(c.Jobs.Retention()), days(c.Media.Retention()))
	content.Kinds = v.Tabs("/jobs", "Kind", "kind", []ui.Option{{Label: "Images and videos"},
		{Value: media.KindImage, Label: "Images"}, {Value: media.KindVideo, Label: "Videos"}})
	if len(g.Tiles) == 0 {
		if content.Empty = noJobs(s); s == (gallery.UserFilter{Account: s.Account, Limit: s.Limit}) {
			if content.Samples, err = samplePrompts(v, catalog.KindImage, catalog.KindVideo); err != nil {
				return nil, err
			}
		}
	}
	return page.FullPage{Name: "jobs", Title: "Jobs", Main: content}, nil
}

// noJobs replaces an empty gallery.
func noJobs(s gallery.UserFilter) *ui.EmptyState {
	if s.Kind != "" || s.Status != "" || s.After != "" {
		return &ui.EmptyState{Title: "No such jobs", Text: "No job matches your selection.",
			Link: &ui.Link{Href: page.Base + "/jobs", Text: "All jobs", Button: true}}
	}
	return &ui.EmptyState{Title: "No jobs yet",
		Text: "Images and videos are created as jobs. Try one in the playground, with your own prompt or one of those below.",
		Link: &ui.Link{Href: page.Base + "/playground?kind=image", Text: "To the playground", Icon: "play", Button: true, Main: true}}
}

// unfetchedNotice explains results not fetched yet, or returns nil if there are none.
func unfetchedNotice(count int64, s gallery.UserFilter) *ui.Notice {
	if count == 0 {
		return nil
	}
	n := &ui.Notice{Tone: ui.Warn, Title: ui.Sayf("Nobody has fetched %s.", atMost(count, maxTally, "%s result", "%s results")),
		Text: "They were charged. If your program expects the picture in the response, let its key wait for pictures."}
	if s.Status != gallery.Unfetched {
		n.Link = &ui.Link{Href: page.Base + "/jobs?status=" + gallery.Unfetched, Text: "Show them"}
	} else {
		n.Link = &ui.Link{Href: page.Base + "/keys", Text: "To the keys"}
	}
	return n
}

// atMost formats a count with the format one or many. A count above limit becomes "more than" limit.
func atMost(count, limit int64, one, many ui.Words) ui.Words {
	if count > limit {
		return ui.Sayf("more than %s", ui.Sayf(many, ui.Thousands(limit)))
	}
	return ui.Plural(int(count), one, many)
}

func days(d interface{ Hours() float64 }) ui.Words {
	if hours := int(d.Hours()); hours < 48 {
		return ui.Plural(hours, "%s hour", "%s hours")
	}
	return ui.Plural(int(d.Hours())/24, "%s day", "%s days")
}

func (c *console) liveJobs(v *page.Visit) (page.Responder, error) {
	g, _, err := c.gallery(v, jobFilterOf(v))
	if err != nil {
		return nil, err
	}
	return page.Fragment{Name: "gallery", Main: g}, nil
}

// gallery returns the jobs of a filter. last is the id of the last job if there are further jobs, or empty.
func (c *console) gallery(v *page.Visit, s gallery.UserFilter) (g galleryFragment, last string, err error) {
	var list []gallery.UserJob
	var more bool
	var tally gallery.Counts
	var sizes map[string]int64
	var hasReceiver bool
	if err := v.View(func(tx *store.Tx) error {
		if list, more, err = gallery.ListTx(tx, s); err != nil {
			return err
		}
		if tally, err = gallery.CountTx(tx, s.Account, s.Kind, maxTally+1); err != nil {
			return err
		}
		ids := make([]string, len(list))
		for i := range list {
			ids[i] = list[i].ID
		}
		if sizes, err = media.SizesTx(tx, ids); err != nil {
			return err
		}
		endpoint, err := webhook.EndpointOrZeroTx(tx, s.Account)
		hasReceiver = endpoint.URL != "" && slices.ContainsFunc(endpoint.Events, func(event string) bool {
			return event == webhook.ImageCompleted || event == webhook.VideoCompleted
		})
		return err
	}); err != nil {
		return g, "", err
	}
	if hasReceiver { // events deliver the results, so nobody needs to fetch them
		tally.Unfetched = 0
	}
	g.unfetched = tally.Unfetched
	if err := c.Jobs.AddPositions(v.Context(), list); err != nil {
		return g, "", err
	}
	g.Address, g.Tabs = page.AddressOf("/jobs/live", v.Request.URL.Query()), jobTabs(v, tally)
	g.Running = tally.Queued+tally.Processing > 0
	g.Announcement = ui.Sayf("%s waiting, %s running", ui.Plural(int(tally.Queued), "%s job", "%s jobs"),
		strconv.FormatInt(tally.Processing, 10))
	room := int64(shownBytes)
	for i := range list {
		list[i].Fetched = list[i].Fetched || hasReceiver
		g.Tiles = append(g.Tiles, tileOf(&list[i], c.Media.Retention(), sizes, &room))
	}
	if more {
		last = list[len(list)-1].ID
	}
	return g, last, nil
}

func jobTabs(v *page.Visit, t gallery.Counts) ui.Tabs {
	states := show.JobStates()
	counts := []int64{t.Queued + t.Processing + t.Succeeded + t.Failed, t.Queued, t.Processing, t.Succeeded, t.Failed}
	if t.Unfetched > 0 || v.Query("status") == gallery.Unfetched {
		states, counts = append(states, ui.Option{Value: gallery.Unfetched, Label: "Not fetched"}), append(counts, t.Unfetched)
	}
	for i, count := range counts {
		states[i].Label = ui.Sayf("%s %s", states[i].Label, ui.Thousands(min(count, maxTally)))
		if count > maxTally {
			states[i].Label = ui.Sayf("%s+", states[i].Label)
		}
	}
	return v.Tabs("/jobs", "State", "status", states)
}

// tileOf returns the tile of a job. room is the number of bytes left for pictures on the page. If a picture
// fits, the tile shows the picture, and tileOf subtracts its size from room.
func tileOf(e *gallery.UserJob, retention time.Duration, sizes map[string]int64, room *int64) ui.Tile {
	t := ui.Tile{Href: page.Base + "/jobs/" + e.ID, Title: ui.Data(titleOf(e)), Alt: ui.Data(altOf(e)), State: show.JobBadge(e.Status)}
	switch e.Status {
	case "queued":
		t.Notes = append(t.Notes, ui.Text{Text: queuePosition(e), Muted: true})
	case "processing":
		t.Notes = append(t.Notes, ui.Elapsed{SinceMS: e.StartedMS})
	case "failed":
		t.Notes = append(t.Notes, ui.Text{Text: show.CodeLabel(e.Code)})
	case "succeeded":
		if !e.Fetched {
			t.Notes = append(t.Notes, ui.Badge{Tone: ui.Warn, Label: "not fetched"})
		}
		t.Notes = append(t.Notes, ui.Money{Amount: e.Cost})
		if e.Seconds > 0 {
			t.Notes = append(t.Notes, ui.Text{Text: ui.Sayf("%s s", strconv.FormatInt(e.Seconds, 10)), Muted: true})
		}
		if len(e.Links) > 1 {
			t.Notes = append(t.Notes, ui.Text{Text: ui.Plural(len(e.Links), "%s image", "%s images"), Muted: true})
		}
		if len(e.Links) == 0 {
			break
		}
		size, exists := sizes[path.Base(e.Links[0])]
		if exists {
			until := ui.Day(time.UnixMilli(e.EndedMS).Add(retention).UTC())
			t.Notes = append(t.Notes, ui.Text{Text: ui.Sayf("until %s UTC", until), Muted: true})
		}
		switch {
		case !exists:
			t.Notes = append(t.Notes, ui.Text{Text: "file deleted", Muted: true})
		case e.Kind == media.KindVideo:
			t.Clip = e.Links[0]
		case size <= *room:
			t.Image = e.Links[0]
			*room -= size
		default:
			t.Notes = append(t.Notes, ui.Text{Text: ui.Sayf("open it to see it, %s", ui.FormatBytes(size)), Muted: true})
		}
	}
	t.Notes = append(t.Notes, ui.Text{Text: ui.Data(e.Model), Muted: true, Mono: true})
	return t
}

func titleOf(e *gallery.UserJob) string {
	if e.Prompt == "" {
		return "A clip from references"
	}
	return shorten(e.Prompt, 60)
}

func altOf(e *gallery.UserJob) string { return shorten(titleOf(e), altLength) }

// shorten shortens a text to n characters.
func shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// queuePosition describes a job's position in its queue and its expected wait.
func queuePosition(e *gallery.UserJob) ui.Words {
	position := ui.Words("next in its queue")
	if e.Ahead > 0 {
		position = ui.Sayf("%s before it", ui.Thousands(e.Ahead))
	}
	if e.WaitSeconds > 0 {
		position = ui.Sayf("%s, about %s", position, ui.FormatDuration(e.WaitSeconds*1000))
	}
	return position
}

// job returns the visitor's job named in the path, and the sizes of its files. It records that an ended job was
// fetched.
func (c *console) job(v *page.Visit) (gallery.UserJob, map[string]int64, error) {
	var e gallery.UserJob
	var sizes map[string]int64
	err := v.View(func(tx *store.Tx) (err error) {
		if e, err = gallery.GetTx(tx, v.Account(), v.PathID()); err != nil {
			return err
		}
		sizes, err = media.SizesTx(tx, []string{e.ID})
		return err
	})
	if errors.Is(err, row.ErrNoJob) {
		return e, nil, fault.New(fault.NotFound, "There is no such job. Jobs are listed for %s after their end.", days(c.Jobs.Retention()))
	}
	if err != nil {
		return e, nil, err
	}
	if e.Final() && !e.Fetched {
		c.Jobs.MarkFetched(e.ID)
	}
	list := []gallery.UserJob{e}
	err = c.Jobs.AddPositions(v.Context(), list)
	return list[0], sizes, err
}

func (c *console) showJob(v *page.Visit) (page.Responder, error) {
	e, sizes, err := c.job(v)
	if err != nil {
		return nil, err
	}
	key, err := page.Read(v, func(tx *store.Tx) (any, error) { return keyLinkTx(tx, v.Account(), e.Key) })
	if err != nil {
		return nil, err
	}
	content := jobPage{Title: ui.Data(titleOf(&e)), Result: c.resultsOf(&e, sizes), Facts: settingsOf(&e, key),
		Prompt: ui.Text{Text: ui.Data(e.Prompt), Lines: true}}
	content.Again = ui.Link{Href: page.Base + "/playground?again=" + e.ID, Text: "Again in the playground", Icon: "refresh-cw", Button: true}
	return page.FullPage{Name: "job", Title: ui.Data(titleOf(&e)), Main: content}, nil
}

func (c *console) liveJob(v *page.Visit) (page.Responder, error) {
	e, sizes, err := c.job(v)
	if err != nil {
		return nil, err
	}
	return page.Fragment{Name: "jobresult", Main: c.resultsOf(&e, sizes)}, nil
}

func (c *console) resultsOf(e *gallery.UserJob, sizes map[string]int64) jobFragment {
	p := jobFragment{Address: page.Base + "/jobs/" + e.ID + "/live", Running: !e.Final(), State: show.JobBadge(e.Status), Steps: stepsOf(e)}
	switch e.Status {
	case "queued":
		p.Text = ui.Text{Text: ui.Sayf("It is waiting for a free slot: %s.", queuePosition(e))}
	case "processing":
		p.Text = ui.Text{Text: "It is being created."}
	case "failed":
		p.Failure = &ui.Notice{Tone: ui.Bad, Title: "It failed.", Text: show.JobMessage(e.Message)}
		p.Receipt = ui.Facts{{Name: "Code", Value: ui.Text{Text: ui.Data(e.Code), Mono: true}}}
	}
	room := int64(shownBytes)
	for i, link := range e.Links {
		size, exists := sizes[path.Base(link)]
		if !exists {
			p.Text = ui.Text{Text: ui.Sayf("Its files are deleted: they are kept for %s.", days(c.Media.Retention())), Muted: true}
			continue
		}
		r := result{Link: link, Alt: altOf(e), Clip: e.Kind == media.KindVideo,
			Copy:  ui.CopyField{ID: "link-" + strconv.Itoa(i), Label: "Link", Value: link},
			Until: ui.Moment{MS: e.EndedMS + c.Media.Retention().Milliseconds()}}
		if !r.Clip {
			if room -= size; room < 0 {
				r.Weight = ui.FormatBytes(size)
			}
		}
		p.Results = append(p.Results, r)
	}
	p.Announcement = ui.Sayf("The job is %s", p.State.Label)
	if e.Status == "failed" {
		p.Announcement = "The job has failed"
	}
	request := ui.Ident{ID: e.Request}
	if e.Final() { // only ended requests are in the log
		request.Href = page.Base + "/requests/" + e.Request
	}
	p.Receipt = append(p.Receipt, ui.Fact{Name: "Request", Value: request}, ui.Fact{Name: "Held", Value: ui.Money{Amount: e.Held}})
	if e.Final() {
		p.Receipt = append(p.Receipt, ui.Fact{Name: "Charged", Value: ui.Money{Amount: e.Cost}})
	}
	return p
}

func stepsOf(e *gallery.UserJob) ui.Timeline {
	var all ui.Timeline
	for _, s := range e.Steps {
		word, ok := show.JobStep(s.Name)
		if !ok {
			continue
		}
		stage := ui.Stage{Tone: ui.Info, Label: word, At: ui.Moment{MS: s.At}}
		switch s.Name {
		case "succeeded":
			stage.Tone = ui.OK
		case "failed", "cancelled", "attempt_failed":
			stage.Tone = ui.Bad
		}
		all = append(all, stage)
	}
	return all
}

func settingsOf(e *gallery.UserJob, key any) ui.Facts {
	facts := ui.Facts{{Name: "Model", Value: ui.Text{Text: ui.Data(e.Model), Mono: true}}, {Name: "Resolution", Value: e.Tier}}
	add := func(name, value ui.Words) {
		if value != "" {
			facts = append(facts, ui.Fact{Name: name, Value: value})
		}
	}
	add("Ratio", ui.Data(e.Ratio))
	if e.Kind == media.KindImage {
		add("Images", ui.Data(ui.Thousands(e.Count)))
	}
	if e.Seconds > 0 {
		add("Length", ui.FormatDuration(e.Seconds*1000))
	}
	if e.References > 0 {
		add("References", ui.Data(ui.Thousands(int64(e.References))))
	}
	var params map[string]any
	if json.Unmarshal(e.Params, &params) == nil {
		for _, name := range slices.Sorted(maps.Keys(params)) {
			add(ui.Data(strings.ReplaceAll(name, "_", " ")), ui.Data(shorten(show.Value("", params[name]), altLength)))
		}
	}
	facts = append(facts, ui.Fact{Name: "Key", Value: key},
		ui.Fact{Name: "Job", Value: ui.Ident{ID: e.ID}}, ui.Fact{Name: "Submitted", Value: ui.Moment{MS: e.CreatedMS}})
	if e.EndedMS > 0 {
		facts = append(facts, ui.Fact{Name: "Ended", Value: ui.Moment{MS: e.EndedMS}})
	}
	return facts
}
