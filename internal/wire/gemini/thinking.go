package gemini

import (
	"strconv"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
)

// thinkingConfig returns the members of the thinkingConfig. Models before Gemini 3 take a number of tokens,
// later ones a level. A reasoning model is asked for its thoughts, so that a long answer has early output.
func (e *encoder) thinkingConfig() (thinking conversation.ObjectWriter, err error) {
	g := generationOf(e.target.Model)
	word, err := e.EffortFor(e.target)
	if err != nil {
		return nil, err
	}
	off := false
	if word != "" {
		budget := ""
		switch word {
		case "none":
			budget, off = "0", true
			if g.pro {
				budget = "128" // the minimum, since these models cannot disable thinking
			}
		case "minimal", "low":
			budget = "1024"
		case "medium":
			budget = "8192"
		case "high", "xhigh", "max":
			budget = "24576"
		}
		if g.isBefore3() {
			thinking.Add("thinkingBudget", budget)
		} else {
			level, _ := wire.NearestEffort(word, g.efforts())
			thinking.Add("thinkingLevel", `"`+strings.ToUpper(level)+`"`)
		}
	}
	if e.target.Reasoning && !off {
		thinking.Add("includeThoughts", "true")
	}
	return thinking, nil
}

// RequiresSignature reports whether a model rejects calls without a signature, by its provider's id.
func RequiresSignature(model string) bool { return !generationOf(model).isBefore3() }

// ThinkingLevels returns the levels of thinking that a model takes in Google's interactions. Models
// before Gemini 3 take levels there, in place of a budget.
func ThinkingLevels(model string) []string {
	g := generationOf(model)
	if g.isBefore3() {
		return []string{"low", "medium", "high"}
	}
	return g.efforts()
}

// generation is the information in a model's id.
type generation struct {
	number           int // 10 times the major version plus the minor one, or 0 if unknown, for example for the newest models
	pro, flash, lite bool
}

// isBefore3 reports whether the model is older than Gemini 3.
func (g generation) isBefore3() bool { return 0 < g.number && g.number < 30 }

// efforts returns the levels of thinking supported by the model. All models support low and high. All but the
// first pro models of Gemini 3 support medium. Flash models up to 3.5 and lite models support minimal.
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

// generationOf parses the provider's id of a model (`gemini-3.1-flash-lite`,
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
