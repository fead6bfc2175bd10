package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"strconv"
	"strings"
	"time"
)

// reverseProxy is the target that the others are compared with.
const reverseProxy = "ReverseProxy"

// figures are the medians of one target in one case.
type figures struct {
	Case     string  `json:"case"`
	Target   string  `json:"target"`
	Rate     float64 `json:"requests_per_second"`
	CPU      float64 `json:"cpu_seconds_per_1000,omitempty"` // with the database server; 0 for the direct upstream
	Times    float64 `json:"times_reverse_proxy,omitempty"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	PeakMiB  float64 `json:"peak_mib,omitempty"`
	Failed   int     `json:"failed"`
	AddedP50 float64 `json:"added_p50_ms,omitempty"` // compared with the direct upstream
}

// figures returns the medians of all cases and targets, in the order of the report.
func (c *chatBench) figures() (all []figures) {
	for _, name := range c.cases {
		plain := median(c.results[name][reverseProxy], func(r round) time.Duration { return r.cpu })
		direct := median(c.results[name]["direct"], func(r round) time.Duration { return r.p50 })
		for _, target := range c.targets {
			rounds := c.results[name][target]
			p50 := median(rounds, func(r round) time.Duration { return r.p50 })
			f := figures{Case: name, Target: target,
				Rate: median(rounds, func(r round) float64 { return float64(r.requests) / r.took.Seconds() }),
				P50:  milliseconds(p50),
				P99:  milliseconds(median(rounds, func(r round) time.Duration { return r.p99 })),
			}
			if rounds[0].peak > 0 {
				cpu := median(rounds, func(r round) time.Duration { return r.cpu })
				f.CPU, f.Times = cpu.Seconds(), float64(cpu)/float64(max(1, plain))
				f.PeakMiB = median(rounds, func(r round) float64 { return r.peak })
				f.AddedP50 = milliseconds(p50 - direct)
			}
			for _, r := range rounds {
				f.Failed += r.failed
			}
			all = append(all, f)
		}
	}
	return all
}

// milliseconds returns d in milliseconds.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printFigures prints the table.
func printFigures(all []figures) {
	number := func(format string, value float64) string {
		if value == 0 {
			return ""
		}
		return fmt.Sprintf(format, value)
	}
	out := newTable("case", "target", "requests/s", "CPU s/1000", "times ReverseProxy", "p50 ms", "p99 ms", "peak MiB", "failed")
	for _, f := range all {
		out.add(f.Case, f.Target, number("%.0f", f.Rate), number("%.3f", f.CPU), number("%.2f", f.Times), number("%.2f", f.P50),
			number("%.2f", f.P99), number("%.0f", f.PeakMiB), strconv.Itoa(f.Failed))
	}
	out.print()
}

// writeJSON writes the figures to a file.
func writeJSON(name string, all []figures) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// limit is the highest ratio to the reverse proxy's CPU time that -max allows.
type limit struct {
	scenario, target string
	times            float64
}

// parseLimits reads the value of -max: `throughput=1.4,throughput@PostgreSQL=1.8`. Without a database,
// a limit is for SQLite.
func parseLimits(text string) (limits []limit, err error) {
	if text == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(entry, "=")
		name, engine, found := strings.Cut(name, "@")
		if !found {
			engine = "SQLite"
		}
		times, err := strconv.ParseFloat(value, 64)
		if err != nil || times <= 0 {
			return nil, fmt.Errorf("-max: %q is not CASE=RATIO or CASE@DATABASE=RATIO", entry)
		}
		limits = append(limits, limit{name, "tollgate, " + engine, times})
	}
	return limits, nil
}

// checkLimits returns an error that names every exceeded limit, and every limit without a figure.
func checkLimits(limits []limit, all []figures) error {
	var errs []error
	for _, l := range limits {
		measured := false
		for _, f := range all {
			if f.Case != l.scenario || f.Target != l.target {
				continue
			}
			measured = true
			if f.Times > l.times {
				errs = append(errs, fmt.Errorf("%s, %s: %.2f times ReverseProxy, more than %.2f", f.Case, f.Target, f.Times, l.times))
			}
		}
		if !measured {
			errs = append(errs, fmt.Errorf("-max: %s, %s was not measured", l.scenario, l.target))
		}
	}
	return errors.Join(errs...)
}

// Sizes in the picture, in pixels.
const (
	barHeight, barGap, groupGap = 14, 3, 14
	labels, barWidth            = 130, 430
	lineHeight                  = 40
)

// writePicture draws the ratios to the reverse proxy as bars, in an SVG file.
func writePicture(name string, all []figures) error {
	colours := map[string]string{"tollgate, SQLite": "#0969da", "tollgate, PostgreSQL": "#8250df"}
	longest := 1.0
	for _, f := range all {
		if colours[f.Target] != "" {
			longest = max(longest, f.Times)
		}
	}
	scale := barWidth / longest
	var bars strings.Builder
	y, group := lineHeight, ""
	for _, f := range all {
		colour := colours[f.Target]
		if colour == "" {
			continue
		}
		if f.Case != group {
			y += groupGap
			fmt.Fprintf(&bars, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labels-8, y+barHeight-2, html.EscapeString(f.Case))
			group = f.Case
		}
		fmt.Fprintf(&bars, `<rect x="%d" y="%d" width="%.0f" height="%d" fill="%s"/><text x="%.0f" y="%d">%.2f</text>`+"\n",
			labels, y, f.Times*scale, barHeight, colour, labels+f.Times*scale+6, y+barHeight-2, f.Times)
		y += barHeight + barGap
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="#57606a">
<title>CPU time per request, as a multiple of Go's ReverseProxy</title>
<text x="%d" y="16">CPU per request, times ReverseProxy:</text>
`, labels+barWidth+60, y+20, labels)
	legend := func(x int, target, words string) {
		head += fmt.Sprintf(`<rect x="%d" y="22" width="12" height="12" fill="%s"/><text x="%d" y="32">%s</text>`+"\n",
			x, colours[target], x+18, words)
	}
	legend(labels, "tollgate, SQLite", "SQLite")
	legend(labels+90, "tollgate, PostgreSQL", "PostgreSQL, with its server")
	proxy := fmt.Sprintf(`<line x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d" stroke="#57606a" stroke-dasharray="4 3"/>`+
		`<text x="%[1]d" y="%[4]d" text-anchor="middle">1.0</text>`+"\n</svg>\n", labels+int(scale), lineHeight, y+4, y+17)
	return os.WriteFile(name, []byte(head+bars.String()+proxy), 0o644)
}
