package userpages

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/fault"
	"tollgate/internal/job/gallery"
	"tollgate/internal/job/row"
	"tollgate/internal/media"
	"tollgate/internal/store"
)

// jobsPage is the gallery of an account's jobs.
type jobsPage struct {
	Kinds   part.Tabs
	Gallery galleryPart
	Empty   *part.Empty
	Samples part.Tabs // prompts to begin with
	Pager   part.Pager
	Live    part.Live
	Kept    string
}

// galleryPart is the live part of the gallery.
type galleryPart struct {
	Address string // address of its updates
	Moving  bool   // something has not ended
	Said    string // announcement for the reader after a change
	Tabs    part.Tabs
	Tiles   part.Tiles
}

// jobPage is one job.
type jobPage struct {
	Title  string
	Again  part.Link
	Result jobPart
	Prompt part.Text
	Facts  part.Facts
	Live   part.Live
}

// jobPart is the live part of a job's page.
type jobPart struct {
	Address string
	Moving  bool
	Said    string
	State   part.Badge
	Text    part.Text
	Failure *part.Notice
	Results []result
	Steps   part.Timeline
	Receipt part.Facts
}

// result is a picture or a clip of a job.
type result struct {
	Link, Alt string
	Clip      bool
	Weight    string // of a picture shown on request; empty if it is shown at once
	Copy      part.Copying
	Until     part.Moment
}

const (
	jobsAPage = 12
	// maxTally is the highest count shown for a state.
	maxTally = 1000
	// shownBytes bounds the total size of a page's pictures. The reader opens further pictures.
	shownBytes = 150 << 10
	// altLength is the length of a picture's description, the beginning of its prompt, in
	// characters.
	altLength = 120
)

// shelfOf reads the selection of jobs from a visit's address.
func shelfOf(v *page.Visit) gallery.UserFilter {
	s := gallery.UserFilter{Account: v.Account(), Limit: jobsAPage, After: v.Query("after")}
	if kind := v.Query("kind"); kind == media.KindImage || kind == media.KindVideo {
		s.Kind = kind
	}
	for _, one := range show.JobStates() {
		if one.Status == v.Query("status") {
			s.Status = one.Status
		}
	}
	return s
}

// shelfPath returns the address of a shelf.
func shelfPath(below string, s gallery.UserFilter) string {
	q := url.Values{}
	for name, value := range map[string]string{"status": s.Status, "kind": s.Kind, "after": s.After} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return page.AddressOf(below, q)
}

func (c *console) listJobs(v *page.Visit) (page.Outgoing, error) {
	s := shelfOf(v)
	g, last, err := c.gallery(v, s)
	if err != nil {
		return nil, err
	}
	shown := jobsPage{Gallery: g, Kept: fmt.Sprintf("Jobs are listed for %s after their end. Their files work for %s.",
		days(c.Jobs.Retention()), days(c.Media.Retention()))}
	shown.Kinds.Label = "Kind"
	for _, one := range [][2]string{{"", "Images and videos"}, {media.KindImage, "Images"}, {media.KindVideo, "Videos"}} {
		shown.Kinds.Items = append(shown.Kinds.Items, part.Tab{Text: one[1], Current: s.Kind == one[0],
			Href: shelfPath("/jobs", gallery.UserFilter{Status: s.Status, Kind: one[0]})})
	}
	next, first := s, s
	next.After, first.After = last, ""
	if last != "" {
		shown.Pager.Next = shelfPath("/jobs", next)
	}
	if s.After != "" {
		shown.Pager.First = shelfPath("/jobs", first)
	}
	if len(g.Tiles) == 0 {
		if shown.Empty = noJobs(s); s == (gallery.UserFilter{Account: s.Account, Limit: s.Limit}) {
			shown.Samples = samplePrompts(catalog.KindImage, catalog.KindVideo)
		}
	}
	return page.Whole{Name: "jobs", Title: "Jobs", Main: shown}, nil
}

// noJobs stands where a gallery is empty: there are none yet, or none like this.
func noJobs(s gallery.UserFilter) *part.Empty {
	if s.Kind != "" || s.Status != "" || s.After != "" {
		return &part.Empty{Title: "No such jobs", Text: "No job matches your selection.",
			Link: &part.Link{Href: page.Base + "/jobs", Text: "All jobs", Button: true}}
	}
	return &part.Empty{Title: "No jobs yet",
		Text: "Images and videos are created as jobs. Try one in the playground, with your own prompt or one of those below.",
		Link: &part.Link{Href: page.Base + "/playground?kind=image", Text: "To the playground", Icon: "play", Button: true, Main: true}}
}

func days(d interface{ Hours() float64 }) string {
	if hours := int(d.Hours()); hours < 48 {
		return part.Plural(hours, "hour")
	}
	return part.Plural(int(d.Hours())/24, "day")
}

// liveJobs returns the live part of the gallery.
func (c *console) liveJobs(v *page.Visit) (page.Outgoing, error) {
	g, _, err := c.gallery(v, shelfOf(v))
	if err != nil {
		return nil, err
	}
	return page.Fragment{Name: "gallery", Main: g}, nil
}

// gallery returns the jobs of a shelf. last is the id of the last job if there are more.
func (c *console) gallery(v *page.Visit, s gallery.UserFilter) (g galleryPart, last string, err error) {
	var list []gallery.UserJob
	var more bool
	var tally gallery.Counts
	var sizes map[string]int64
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
		sizes, err = media.SizesTx(tx, ids)
		return err
	}); err != nil {
		return g, "", err
	}
	if err := c.Jobs.AddPositions(v.Context(), list); err != nil {
		return g, "", err
	}
	g = galleryPart{Address: shelfPath("/jobs/live", s), Tabs: jobTabs(s, tally)}
	g.Moving = tally.Queued+tally.Processing > 0
	g.Said = part.Plural(int(tally.Queued), "job") + " waiting, " + strconv.FormatInt(tally.Processing, 10) + " running"
	room := int64(shownBytes)
	for i := range list {
		g.Tiles = append(g.Tiles, tileOf(&list[i], c.Media.Retention(), sizes, &room))
	}
	if more {
		last = list[len(list)-1].ID
	}
	return g, last, nil
}

func jobTabs(s gallery.UserFilter, t gallery.Counts) part.Tabs {
	tabs := part.Tabs{Label: "State"}
	add := func(status string, count int64) {
		n := part.Thousands(min(count, maxTally))
		if count > maxTally {
			n += "+"
		}
		tabs.Items = append(tabs.Items, part.Tab{Href: shelfPath("/jobs", gallery.UserFilter{Kind: s.Kind, Status: status}),
			Text: show.JobTab(status) + " " + n, Current: s.Status == status})
	}
	add("", t.Queued+t.Processing+t.Succeeded+t.Failed)
	counts := map[string]int64{"queued": t.Queued, "processing": t.Processing, "succeeded": t.Succeeded, "failed": t.Failed}
	for _, one := range show.JobStates() {
		add(one.Status, counts[one.Status])
	}
	return tabs
}

// tileOf returns the tile of a job. A picture is shown if its size fits in room.
func tileOf(e *gallery.UserJob, keptFor time.Duration, sizes map[string]int64, room *int64) part.Tile {
	t := part.Tile{Href: page.Base + "/jobs/" + e.ID, Title: titleOf(e), Alt: altOf(e), State: show.JobBadge(e.Status)}
	switch e.Status {
	case "queued":
		t.Notes = append(t.Notes, part.Text{Text: placeOf(e), Muted: true})
	case "processing":
		t.Notes = append(t.Notes, part.Elapsed{SinceMS: e.StartedMS})
	case "failed":
		t.Notes = append(t.Notes, part.Text{Text: cut(e.Message, altLength)})
	case "succeeded":
		t.Notes = append(t.Notes, part.Money{Amount: e.Cost})
		if e.Seconds > 0 {
			t.Notes = append(t.Notes, part.Text{Text: strconv.FormatInt(e.Seconds, 10) + " s", Muted: true})
		}
		if len(e.Links) > 1 {
			t.Notes = append(t.Notes, part.Text{Text: part.Plural(len(e.Links), "image"), Muted: true})
		}
		if len(e.Links) == 0 {
			break
		}
		size, kept := sizes[path.Base(e.Links[0])]
		if kept {
			until := part.Day(time.UnixMilli(e.EndedMS).Add(keptFor).UTC())
			t.Notes = append(t.Notes, part.Text{Text: "until " + until + " UTC", Muted: true})
		}
		switch {
		case !kept:
			t.Notes = append(t.Notes, part.Text{Text: "file deleted", Muted: true})
		case e.Kind == media.KindVideo:
			t.Clip = e.Links[0]
		case size <= *room:
			t.Image = e.Links[0]
			*room -= size
		default:
			t.Notes = append(t.Notes, part.Text{Text: "open it to see it, " + part.Weight(size), Muted: true})
		}
	}
	t.Notes = append(t.Notes, part.Text{Text: e.Model, Muted: true, Mono: true})
	return t
}

// titleOf returns the title of a job.
func titleOf(e *gallery.UserJob) string {
	if e.Prompt == "" {
		return "A clip from references"
	}
	return cut(e.Prompt, 60)
}

func altOf(e *gallery.UserJob) string { return cut(titleOf(e), altLength) }

// cut shortens a text to n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// placeOf describes a job's place in its queue and its expected wait.
func placeOf(e *gallery.UserJob) string {
	place := "next in its queue"
	if e.Ahead > 0 {
		place = part.Thousands(e.Ahead) + " before it"
	}
	if e.WaitSeconds > 0 {
		place += ", about " + part.Span(e.WaitSeconds*1000)
	}
	return place
}

// job returns the visitor's job named in the path, and the sizes of its files.
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
	list := []gallery.UserJob{e}
	err = c.Jobs.AddPositions(v.Context(), list)
	return list[0], sizes, err
}

func (c *console) showJob(v *page.Visit) (page.Outgoing, error) {
	e, sizes, err := c.job(v)
	if err != nil {
		return nil, err
	}
	var key any
	if err := v.View(func(tx *store.Tx) (err error) {
		key, err = keyLinkTx(tx, v.Account(), e.Key)
		return err
	}); err != nil {
		return nil, err
	}
	shown := jobPage{Title: titleOf(&e), Result: c.resultsOf(&e, sizes), Facts: settingsOf(&e, key),
		Prompt: part.Text{Text: e.Prompt, Lines: true}}
	shown.Again = part.Link{Href: page.Base + "/playground?again=" + e.ID, Text: "Again in the playground", Icon: "refresh-cw", Button: true}
	return page.Whole{Name: "job", Title: titleOf(&e), Main: shown}, nil
}

// liveJob returns the live part of a job until the job has ended.
func (c *console) liveJob(v *page.Visit) (page.Outgoing, error) {
	e, sizes, err := c.job(v)
	if err != nil {
		return nil, err
	}
	return page.Fragment{Name: "jobresult", Main: c.resultsOf(&e, sizes)}, nil
}

// resultsOf returns the state and the results of a job.
func (c *console) resultsOf(e *gallery.UserJob, sizes map[string]int64) jobPart {
	p := jobPart{Address: page.Base + "/jobs/" + e.ID + "/live", Moving: !e.Final(), State: show.JobBadge(e.Status), Steps: stepsOf(e)}
	switch e.Status {
	case "queued":
		p.Text = part.Text{Text: "It is waiting for a free slot: " + placeOf(e) + "."}
	case "processing":
		p.Text = part.Text{Text: "It is being created."}
	case "failed":
		p.Failure = &part.Notice{Tone: part.Bad, Title: "It failed.", Text: e.Message}
		p.Receipt = part.Facts{{Name: "Code", Value: part.Text{Text: e.Code, Mono: true}}}
	}
	room := int64(shownBytes)
	for i, link := range e.Links {
		size, kept := sizes[path.Base(link)]
		if !kept {
			p.Text = part.Text{Text: "Its files are deleted: they are kept for " + days(c.Media.Retention()) + ".", Muted: true}
			continue
		}
		r := result{Link: link, Alt: altOf(e), Clip: e.Kind == media.KindVideo,
			Copy:  part.Copying{ID: "link-" + strconv.Itoa(i), Label: "Link", Value: link},
			Until: part.Moment{MS: e.EndedMS + c.Media.Retention().Milliseconds()}}
		if !r.Clip {
			if room -= size; room < 0 {
				r.Weight = part.Weight(size)
			}
		}
		p.Results = append(p.Results, r)
	}
	p.Said = "The job is " + p.State.Word
	if e.Status == "failed" {
		p.Said = "The job has failed"
	}
	request := part.Ident{ID: e.Request}
	if e.Final() { // only ended requests are in the log
		request.Href = page.Base + "/requests/" + e.Request
	}
	p.Receipt = append(p.Receipt, part.Fact{Name: "Request", Value: request}, part.Fact{Name: "Held", Value: part.Money{Amount: e.Held}})
	if e.Final() {
		p.Receipt = append(p.Receipt, part.Fact{Name: "Charged", Value: part.Money{Amount: e.Cost}})
	}
	return p
}

// valueWords formats a JSON value for people: strings without quotes, booleans as yes or no.
func valueWords(raw json.RawMessage) string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	switch v := value.(type) {
	case string:
		return v
	case bool:
		if v {
			return "yes"
		}
		return "no"
	}
	return string(raw)
}

func stepsOf(e *gallery.UserJob) part.Timeline {
	var all part.Timeline
	for _, s := range e.Steps {
		word, shown := show.JobStep(s.Name)
		if !shown {
			continue
		}
		stage := part.Stage{Tone: part.Info, Word: word, At: part.Moment{MS: s.At}}
		switch s.Name {
		case "succeeded":
			stage.Tone = part.OK
		case "failed", "cancelled", "attempt_failed":
			stage.Tone = part.Bad
		}
		all = append(all, stage)
	}
	return all
}

func settingsOf(e *gallery.UserJob, key any) part.Facts {
	facts := part.Facts{{Name: "Model", Value: part.Text{Text: e.Model, Mono: true}}, {Name: "Resolution", Value: e.Tier}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, part.Fact{Name: name, Value: value})
		}
	}
	add("Ratio", e.Ratio)
	if e.Kind == media.KindImage {
		add("Images", strconv.FormatInt(e.Count, 10))
	}
	if e.Seconds > 0 {
		add("Length", strconv.FormatInt(e.Seconds, 10)+" s")
	}
	if e.References > 0 {
		add("References", strconv.Itoa(e.References))
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(e.Params, &params) == nil {
		for _, name := range slices.Sorted(maps.Keys(params)) {
			add(strings.ReplaceAll(name, "_", " "), cut(valueWords(params[name]), altLength))
		}
	}
	facts = append(facts, part.Fact{Name: "Key", Value: key},
		part.Fact{Name: "Job", Value: part.Ident{ID: e.ID}}, part.Fact{Name: "Submitted", Value: part.Moment{MS: e.CreatedMS}})
	if e.EndedMS > 0 {
		facts = append(facts, part.Fact{Name: "Ended", Value: part.Moment{MS: e.EndedMS}})
	}
	return facts
}
