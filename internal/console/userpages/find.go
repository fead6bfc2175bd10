package userpages

import (
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/store"
)

// findPage lists the results of a search. A single result redirects to its own page instead.
type findPage struct {
	Filters  ui.Filters
	Query    string
	Keys     ui.DataTable
	Models   ui.DataTable
	Searched int // number of the newest keys if only these were searched; otherwise 0
}

// maxSearchedKeys bounds the keys searched by name and hint.
const maxSearchedKeys = 1000

// find redirects to the page of an object. The search text is an id, a key's name or hint, or a model.
func (c *console) find(v *page.Visit) (page.Responder, error) {
	q := strings.TrimSpace(v.Query("q"))
	content := findPage{Query: q, Filters: ui.Filters{Action: page.Base + "/find", Fields: []ui.FormField{
		{Name: "q", Label: "Any id, a key's name or hint, or a model", Value: q}}}}
	if q == "" {
		return page.FullPage{Name: "find", Title: "Find", Main: content}, nil
	}
	target, err := c.target(v, q)
	if err != nil || target != "" {
		return page.Redirect(page.Base + target), err
	}
	var keys []account.Key
	var hidden map[string]bool
	if err := v.View(func(tx *store.Tx) error {
		var err error
		if hidden, err = c.hiddenModelsTx(tx, v.Account()); err != nil {
			return err
		}
		keys = nil
		all, more, err := account.NewestKeysTx(tx, v.Account(), maxSearchedKeys)
		content.Searched = maxSearchedKeys
		if !more {
			content.Searched = 0
		}
		for _, k := range all {
			if matches(show.KeyName(k), q) || strings.EqualFold(k.Hint, strings.ReplaceAll(q, "…", "...")) {
				keys = append(keys, k)
			}
		}
		return err
	}); err != nil {
		return nil, err
	}
	var models []*catalog.Model
	for _, m := range c.Catalog.Current().Models() {
		if m.State != catalog.StateRetired && !hidden[m.ID] && matches(m.ID, q) {
			models = append(models, m)
		}
	}
	switch {
	case len(keys) == 1 && len(models) == 0:
		return page.Redirect(keyPath(keys[0])), nil
	case len(keys) == 0 && len(models) == 1:
		return page.Redirect(modelPath(models[0])), nil
	}
	content.Keys = keysTable(keys)
	content.Models = ui.DataTable{Caption: "Models", Columns: []ui.Column{{Title: "Model"}, {Title: "Kind"}, {Title: "State"}}}
	for _, m := range models {
		content.Models.Rows = append(content.Models.Rows, ui.DataRow{Href: modelPath(m), Cells: []any{m.ID, show.KindName(m.Kind),
			show.ModelState(m.State)}})
	}
	return page.FullPage{Name: "find", Title: "Find", Main: content}, nil
}

func matches(name, text string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}

// target returns the path of the page of an id, below page.Base. It returns an empty string if q is not an id.
func (c *console) target(v *page.Visit, q string) (string, error) {
	prefix, _, _ := strings.Cut(q, "_")
	id := url.PathEscape(q)
	switch prefix + "_" {
	case "req_":
		return "/requests/" + id, nil
	case "job_":
		return "/jobs/" + id, nil
	case "key_":
		return "/keys/" + id, nil
	case "dlv_":
		return "/webhooks/deliveries/" + id, nil
	case "evt_":
		return c.deliveryOf(v, q)
	}
	return "", nil
}

// deliveryOf returns the path of the page of an event's delivery, or an empty string if there is no delivery.
func (c *console) deliveryOf(v *page.Visit, event string) (target string, err error) {
	err = v.View(func(tx *store.Tx) error {
		d, found, err := c.Webhooks.OwnEventTx(tx, v.Account(), event)
		if found {
			target = "/webhooks/deliveries/" + d.ID
		}
		return err
	})
	return target, err
}
