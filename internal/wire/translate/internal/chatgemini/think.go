package chatgemini

import (
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// geminiThinking makes the thinkingConfig. Models before Gemini 3 take a
// number of tokens, later ones a level. The thoughts of a model that thinks
// are asked for: they are the first that a client sees of a long answer.
func (r chatOnGemini) geminiThinking(t wire.Translation) (thinking geminiFields, err error) {
	g := generationOf(t.Model)
	effort, err := t.Effort(r.Doc.Raw("reasoning_effort"), "reasoning_effort")
	if err != nil {
		return nil, err
	}
	off := false
	if effort != nil {
		word, budget := rawjson.Unquote(effort), ""
		switch word {
		case "none":
			budget, off = "0", true
			if g.pro {
				budget = "128" // the least; these cannot do without
			}
		case "minimal", "low":
			budget = "1024"
		case "medium":
			budget = "8192"
		case "high", "xhigh", "max":
			budget = "24576"
		default:
			return nil, cannotGemini("reasoning_effort", "must be none, minimal, low, medium or high.")
		}
		if g.before3() {
			thinking.add("thinkingBudget", budget)
		} else {
			level, _ := wire.NearestEffort(word, g.efforts())
			thinking.add("thinkingLevel", `"`+strings.ToUpper(level)+`"`)
		}
	}
	if t.Reasoning && !off {
		thinking.add("includeThoughts", "true")
	}
	return thinking, nil
}

// generation is what a model's id says about what it takes.
type generation struct {
	number           int // 10 times the major version and the minor one; 0: it does not say, which names the newest
	pro, flash, lite bool
}

// before3 tells that the model is of a generation before the third.
func (g generation) before3() bool { return 0 < g.number && g.number < 30 }

// efforts are the levels of thinking that the model takes; others are refused
// there. Low and high are known to all, medium to all but the first of the third
// generation's pro models. Minimal is known to the flash models of up to 3.5, and
// to the small ones.
func (g generation) efforts() []string {
	levels := []string{"low", "high"}
	if g.lite || g.flash && 0 < g.number && g.number <= 35 {
		levels = append(levels, "minimal")
	}
	if !g.pro || g.number != 30 {
		levels = append(levels, "medium")
	}
	return levels
}

// generationOf reads the provider's id of a model (`gemini-3.1-flash-lite`,
// `models/gemini-2.5-pro`).
func generationOf(model string) (g generation) {
	_, name, _ := strings.Cut(model, "gemini-")
	version, _, _ := strings.Cut(name, "-")
	major, minor, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err == nil && 0 < n && n < 100 {
		g.number = 10 * n
		if n, err := strconv.Atoi(minor); err == nil && 0 < n && n < 10 {
			g.number += n
		}
	}
	g.pro, g.flash, g.lite = strings.Contains(model, "pro"), strings.Contains(model, "flash"), strings.Contains(model, "lite")
	return g
}
