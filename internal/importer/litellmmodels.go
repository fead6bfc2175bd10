package importer

import "strings"

// namedModels returns the models of a list, and reports whether the list allows all models.
func namedModels(list []string) (models []string, all bool) {
	for _, model := range list {
		switch model {
		case "all-team-models", "all-proxy-models", "*":
			return nil, true
		}
		models = append(models, model)
	}
	return models, len(models) == 0
}

// setAllowedModels restricts a key to models. It leaves out patterns, which have no counterpart, and
// remarks on names that are not in the catalog.
func (l *liteLLM) setAllowedModels(k *OldKey, e entry, models []string) {
	names := []string{}
	for _, model := range models {
		if strings.Contains(model, "*") {
			l.remark(e, "it was allowed models by the pattern "+excerpt(model)+", which matches no model here",
				"name them with `tollgate key change`")
			continue
		}
		names = append(names, model)
	}
	if len(l.models) > 0 {
		for _, model := range names {
			if !l.has(model) {
				l.remark(e, "it is allowed "+excerpt(model)+", which is not a model of the catalog",
					"where it is a group of models, name these with `tollgate key change`")
			}
		}
	}
	l.limitModels(k, e, names)
}
