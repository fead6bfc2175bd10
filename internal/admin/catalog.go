package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// refreshTimeout bounds the time for this node to apply a change before the answer is sent.
const refreshTimeout = time.Second

// catalogDocument is a catalog with its revision.
type catalogDocument struct {
	doc      *catalog.Document
	revision int64
}

func (s *server) getCatalog(c *call) (any, error) {
	n, err := view(s, c, func(tx *store.Tx) (n catalogDocument, err error) {
		n.doc, n.revision, err = catalog.CurrentTx(tx)
		return n, err
	})
	if errors.Is(err, catalog.ErrNoRevision) {
		return nil, fault.New(fault.NotFound, "No catalog was applied yet. Send one with PUT /admin/v1/catalog, or run `tollgate apply FILE`.")
	}
	if err != nil {
		return nil, err
	}
	return c.document(n), nil
}

func (s *server) getRevision(c *call) (any, error) {
	number, err := strconv.ParseInt(c.id, 10, 64)
	if err != nil {
		return nil, noRevision(c.id)
	}
	n, err := view(s, c, func(tx *store.Tx) (n catalogDocument, err error) {
		n.revision = number
		n.doc, err = catalog.RevisionTx(tx, number)
		return n, err
	})
	if errors.Is(err, catalog.ErrNoRevision) {
		return nil, noRevision(c.id)
	}
	if err != nil {
		return nil, err
	}
	return c.document(n), nil
}

func noRevision(number string) error {
	return fault.New(fault.NotFound, "There is no catalog revision %s. GET /admin/v1/catalog/revisions lists them.", fault.Excerpt(number))
}

// document encodes a catalog in the client's preferred format, by default JSON.
func (c *call) document(n catalogDocument) text {
	c.Header().Set("X-Catalog-Revision", strconv.FormatInt(n.revision, 10))
	if wantsYAML(c.Request.Header.Values("Accept")) {
		return text{"application/yaml", n.doc.YAML()}
	}
	return text{"application/json", n.doc.JSON()}
}

// wantsYAML reports whether an Accept header names YAML before JSON.
func wantsYAML(accept []string) bool {
	for _, line := range accept {
		for kind := range strings.SplitSeq(line, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
				return true
			case "application/json", "*/*", "application/*":
				return false
			}
		}
	}
	return false
}

// applyAnswer is the answer to PUT /catalog.
type applyAnswer struct {
	Revision int64    `json:"revision"`
	Changes  []string `json:"changes"`
	Warnings []string `json:"warnings"`
	DryRun   bool     `json:"dry_run,omitempty"`
}

func (s *server) putCatalog(c *call) (any, error) {
	values, err := c.query("dry_run", "at", "note", "tell_customers")
	if err != nil {
		return nil, err
	}
	dryRun, err := boolean(values, "dry_run")
	if err != nil {
		return nil, err
	}
	schedule, err := scheduleOf(values)
	if err != nil {
		return nil, err
	}
	body, err := c.read(maxCatalog)
	if err != nil {
		return nil, err
	}
	doc, warnings, err := catalog.Parse(body, s.Providers)
	if err != nil {
		return nil, invalidCatalog(err)
	}
	if s.Catalog != nil {
		warnings = append(warnings, s.Catalog.NodeWarnings(doc)...)
	}
	removals, err := view(s, c, func(tx *store.Tx) ([]string, error) { return operator.RemovalWarningsTx(tx, doc) })
	if err != nil {
		return nil, err
	}
	out := applyAnswer{Warnings: append(lines(warnings), removals...), DryRun: dryRun}
	if schedule.AtMS != 0 && !dryRun {
		return s.schedule(c, doc, schedule, out.Warnings)
	}
	inTx, apply := view[catalog.ApplyResult], catalog.PreviewTx
	if !dryRun {
		inTx, apply = change[catalog.ApplyResult], func(tx *store.Tx, doc *catalog.Document) (catalog.ApplyResult, error) {
			return operator.ApplyTx(tx, s.actor(c), doc)
		}
	}
	applied, err := inTx(s, c, func(tx *store.Tx) (catalog.ApplyResult, error) { return apply(tx, doc) })
	if err != nil {
		return nil, err
	}
	out.Revision, out.Changes = applied.Revision, applied.Changes
	if !dryRun {
		s.refresh(c.ctx)
	}
	return out, nil
}

// refresh makes this node serve the new catalog before the answer is sent. If that fails, the
// watcher retries.
func (s *server) refresh(ctx context.Context) {
	if s.Catalog == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	if err := s.Catalog.Refresh(ctx); err != nil {
		s.Log.Warn("operator API: the new catalog is not in use here yet", "error", err)
	}
}

// invalidCatalog returns a 400 with all faults of a catalog.
func invalidCatalog(err error) error {
	var faults catalog.Faults
	if !errors.As(err, &faults) || len(faults) == 0 {
		return err
	}
	intro := ":"
	if len(faults) > 1 {
		intro = fmt.Sprintf(". The first of %d faults:", len(faults))
	}
	f := fault.At(fault.InvalidCatalog, fault.Excerpt(faults[0].Path), "The catalog was refused and nothing changed%s %s", intro, faults[0])
	f.Fields = map[string]any{"faults": lines(faults)}
	return f
}

// revisionAnswer is an entry of the catalog's history.
type revisionAnswer struct {
	Revision int64    `json:"revision"`
	Changes  []string `json:"changes"`
	Created  int64    `json:"created"`
}

func (s *server) listRevisions(c *call) (any, error) {
	_, after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	var before int64
	if after != "" {
		if before, err = strconv.ParseInt(after, 10, 64); err != nil || before < 1 {
			return nil, fault.At(fault.InvalidRequest, "after", "after must be the number of a revision.")
		}
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := catalog.HistoryTx(tx, before, limit)
		return newList(items, more, func(r catalog.Revision) revisionAnswer {
			return revisionAnswer{Revision: r.Number, Changes: r.Changes, Created: seconds(r.AppliedMS)}
		}), err
	})
}

// lines formats faults or warnings as `path: message`, like the command line.
func lines[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = v.String()
	}
	return out
}
