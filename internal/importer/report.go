package importer

import (
	"fmt"
	"strings"

	"tollgate/internal/money"
)

// ImportReport reports what an import did, or what a dry run would do.
type ImportReport struct {
	Program Program      `json:"program"`
	Name    string       `json:"name"`
	DryRun  bool         `json:"dry_run"`
	Counts  []*KindCount `json:"counts"`
	Credit  money.Amount `json:"credit_usd"` // sum of the opening balances of new accounts
	Files   []OutputFile `json:"files"`
	Remarks []Remark     `json:"remarks"`
}

// KindCount counts the entries of one kind: Found = Made + There + Left.
type KindCount struct {
	What  string `json:"what"`
	Found int    `json:"found"` // in the source
	Made  int    `json:"made"`
	There int    `json:"there"` // created by an earlier import
	Left  int    `json:"left"`  // not imported; a remark gives the reason
}

// OutputFile is a file of an import.
type OutputFile struct {
	Path string `json:"path"`
	Kept bool   `json:"kept"` // the file existed before and was not changed
}

// Remark reports data that was changed by the import, or not imported.
type Remark struct {
	About string `json:"about"` // channel, model, user, token, …: the word of the source
	ID    string `json:"id"`
	Name  string `json:"name"`
	What  string `json:"what"` // the difference
	Do    string `json:"do"`   // what to do; may be empty
}

// notes collects the counts and remarks of a plan.
type notes struct {
	Counts  []*KindCount
	Remarks []Remark
}

// entry is the subject of a remark: the source's word for its kind, its identifier and its name.
type entry struct{ about, id, name string }

// remark adds a remark on e.
func (n *notes) remark(e entry, what, do string) {
	n.Remarks = append(n.Remarks, Remark{About: e.about, ID: e.id, Name: excerpt(e.name), What: what, Do: do})
}

// excerpt returns text as one line of at most 80 characters.
func excerpt(text string) string {
	const limit = 80
	clean := []rune(oneLine(text))
	if len(clean) > limit {
		return string(clean[:limit]) + "…"
	}
	return string(clean)
}

// Text formats the report for a terminal.
func (r *ImportReport) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-10s %8s %8s %8s %8s\n", "", "FOUND", "MADE", "THERE", "LEFT OUT")
	for _, c := range r.Counts {
		fmt.Fprintf(&out, "%-10s %8d %8d %8d %8d\n", strings.ReplaceAll(c.What, "_", " "), c.Found, c.Made, c.There, c.Left)
	}
	fmt.Fprintf(&out, "\nOpening balances: %s USD\n", r.Credit)
	for _, f := range r.Files {
		state := "written"
		switch {
		case f.Kept:
			state = "was there, left as it is"
		case r.DryRun:
			state = "would be written"
		}
		fmt.Fprintf(&out, "%s: %s\n", f.Path, state)
	}
	if len(r.Remarks) > 0 {
		out.WriteString("\nNot carried over, or not as it was:\n")
	}
	for _, g := range groupRemarks(r.Remarks) {
		fmt.Fprintf(&out, "\n%s\n  %s\n", g.names(), g.what)
		if g.do != "" {
			fmt.Fprintf(&out, "  > %s\n", g.do)
		}
	}
	return out.String()
}

// remarkGroup is a remark with its entries.
type remarkGroup struct {
	about, what, do string
	remarks         []Remark
}

// groupRemarks groups equal remarks in the order of their first entry.
func groupRemarks(remarks []Remark) (groups []*remarkGroup) {
	byRemark := map[[3]string]*remarkGroup{}
	for _, r := range remarks {
		key := [3]string{r.About, r.What, r.Do}
		if byRemark[key] == nil {
			byRemark[key] = &remarkGroup{about: r.About, what: r.What, do: r.Do}
			groups = append(groups, byRemark[key])
		}
		byRemark[key].remarks = append(byRemark[key].remarks, r)
	}
	return groups
}

// names lists the first entries of a remark. The JSON report lists all.
func (g *remarkGroup) names() string {
	const limit = 8
	var names []string
	for _, r := range g.remarks[:min(len(g.remarks), limit)] {
		switch {
		case r.ID != "" && r.Name != "":
			names = append(names, r.ID+" ("+r.Name+")")
		case r.ID+r.Name != "":
			names = append(names, r.ID+r.Name)
		}
	}
	text := strings.TrimSpace(g.about + " " + strings.Join(names, ", "))
	if more := len(g.remarks) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
