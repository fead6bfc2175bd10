package sandbox

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are a line's `options` in the catalog.
//
//	delay        time before the first token ("200ms"), or until an image or
//	             a video is rendered
//	chunk_delay  time between tokens
//	tokens       length of the answer in tokens; default: what the text needs
//	usage        false leaves the usage out
//	reasoning    true thinks before it answers, as models whose name has
//	             "think" or "reason" in it always do
//	fail         the failure to simulate, see failKinds
//	fail_rate    share of failing calls, 0 to 1; default 1. For images and
//	             videos the key of a submission decides
//	fail_on      a regular expression (a plain word is one): only matching
//	             prompts fail. The text of its first group names the failure,
//	             if such a failure exists
//	break_after  the connection breaks after this number of tokens
//	stall_after  the answer stops after this number of tokens
//	async        true: images and videos have tickets; false: submissions
//	             block. Default: videos have tickets, images block
//	poll_wait    time from a poll to the next, default 1s
type options struct {
	delay, chunkDelay      time.Duration
	tokens                 int
	usage, reasoning       bool
	fail                   string
	failRate               float64
	failOn                 *regexp.Regexp // if nil, every prompt matches
	breakAfter, stallAfter int            // -1: never
	async                  *bool          // if nil, see the option async above
	pollWait               time.Duration  // zero means defaultPollWait
}

// Limits of options.
const (
	maxDelay  = time.Hour
	maxTokens = 100_000

	maxPattern      = 500 // characters of fail_on
	defaultPollWait = time.Second
)

// The failures other than a refusal with a status.
const (
	failTimeout    = "timeout"       // no answer until the caller gives up
	failConnection = "connection"    // the connection is reset
	failPage       = "page"          // a web page instead of an answer
	failEmpty      = "empty"         // an answer without content
	failFilter     = "filter"        // an answer emptied by the safety policy
	failSentence   = "sentence"      // an error notice as the text of the answer
	failInside     = "error_inside"  // an error in a 200 answer, in a stream after break_after tokens
	failThinking   = "thinking_only" // an answer cut before the first word
)

// failKindOf returns the failure for a prompt before fail_rate applies, or "".
func (o options) failKindOf(prompt string) string {
	if o.failOn == nil {
		return o.fail
	}
	found := o.failOn.FindStringSubmatch(prompt)
	switch {
	case found == nil:
		return ""
	case len(found) > 1 && slices.Contains(failKinds(), found[1]):
		return found[1]
	}
	return o.fail
}

// failKinds lists every value of the option `fail`.
func failKinds() []string {
	kinds := []string{failTimeout, failConnection, failPage, failEmpty, failFilter, failSentence, failInside, failThinking}
	kinds = append(kinds, jobFailKinds()...)
	for kind := range refusals() {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// readOptions checks and reads a line's options. Values come from YAML or
// JSON, so a number may have any of their types.
func readOptions(raw map[string]any) (options, error) {
	o := options{usage: true, failRate: 1, breakAfter: -1, stallAfter: -1}
	for name, value := range raw {
		var err error
		switch name {
		case "delay":
			o.delay, err = duration(value)
		case "chunk_delay":
			o.chunkDelay, err = duration(value)
		case "tokens":
			o.tokens, err = wholeNumber(value, 1)
		case "usage":
			o.usage, err = boolean(value)
		case "reasoning":
			o.reasoning, err = boolean(value)
		case "fail":
			o.fail, err = failKind(value)
		case "fail_rate":
			o.failRate, err = share(value)
		case "fail_on":
			o.failOn, err = pattern(value)
		case "async":
			var async bool
			async, err = boolean(value)
			o.async = &async
		case "poll_wait":
			o.pollWait, err = duration(value)
		case "break_after":
			o.breakAfter, err = wholeNumber(value, 0)
		case "stall_after":
			o.stallAfter, err = wholeNumber(value, 0)
		default:
			err = fmt.Errorf("unknown option")
		}
		if err != nil {
			return options{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if o.failOn != nil && o.fail == "" && o.failOn.NumSubexp() == 0 {
		return options{}, fmt.Errorf("fail_on: needs the option fail, or a group that matches the name of a failure: \"fail:([a-z_]+)\"")
	}
	return o, nil
}

func pattern(value any) (*regexp.Regexp, error) {
	s, ok := value.(string)
	if !ok || s == "" || len(s) > maxPattern {
		return nil, fmt.Errorf("must be a regular expression of at most %d characters", maxPattern)
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("must be a regular expression: %w", err)
	}
	return re, nil
}

func duration(value any) (time.Duration, error) {
	s, ok := value.(string)
	if !ok {
		return 0, fmt.Errorf("must be a duration such as \"200ms\"")
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > maxDelay {
		return 0, fmt.Errorf("must be a duration from 0s to %s", maxDelay)
	}
	return d, nil
}

func wholeNumber(value any, least int) (int, error) {
	f, ok := number(value)
	if !ok || f != math.Trunc(f) || f < float64(least) || f > maxTokens {
		return 0, fmt.Errorf("must be a whole number from %d to %d", least, maxTokens)
	}
	return int(f), nil
}

func share(value any) (float64, error) {
	f, ok := number(value)
	if !ok || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("must be a number from 0 to 1")
	}
	return f, nil
}

func boolean(value any) (bool, error) {
	b, ok := value.(bool)
	if !ok {
		return false, fmt.Errorf("must be true or false")
	}
	return b, nil
}

func failKind(value any) (string, error) {
	s, ok := value.(string)
	if kinds := failKinds(); !ok || !slices.Contains(kinds, s) {
		return "", fmt.Errorf("must be one of %s", strings.Join(kinds, ", "))
	}
	return s, nil
}

// number reads a number of any type from a YAML or JSON decoder.
func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}
