package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"tollgate/internal/app/imports"
)

type importCommand struct {
	Program string `arg:"" enum:"one-api,new-api,litellm" help:"one-api, new-api or litellm."`
	Source  string `arg:"" optional:"" help:"SQLite file, postgres:// URL, or MySQL's USER:PASSWORD@tcp(HOST)/NAME (-: standard input)."`

	DryRun        bool    `help:"Only report what would be done."`
	WriteCatalog  string  `help:"File for models and lines; their keys go into secrets beside it." default:"imported.yaml" placeholder:"FILE"`
	LitellmConfig string  `name:"litellm-config" help:"LiteLLM's config.yaml." placeholder:"FILE"`
	Options       string  `help:"Answer of GET /api/option/ of one-api or new-api: settings that the database lacks." placeholder:"FILE"`
	Models        string  `help:"LiteLLM's model_prices_and_context_window.json: limits, and prices of LiteLLM." placeholder:"FILE"`
	UnlimitedUSD  *usd    `name:"unlimited-usd" help:"What an account without a budget at LiteLLM begins with (default: 0)." placeholder:"USD"`
	Name          string  `help:"Name of the source, where there are several of one program." placeholder:"TEXT"`
	Report        *string `help:"File for the report as JSON." placeholder:"FILE"`
	JSON          bool    `help:"Print the report as JSON; the default where this is no terminal."`
}

// Run carries over what another gateway has, and reports.
func (c *importCommand) Run(p *process) error {
	if c.Source == "" && c.Program != "litellm" { // which may come as a file of its settings
		return usageError{errors.New("name the database of " + c.Program +
			": an SQLite file, a postgres:// URL, or a MySQL address USER:PASSWORD@tcp(HOST:3306)/DATABASE; - reads it from standard input")}
	}
	settings, err := p.settings()
	if err != nil {
		return err
	}
	in := imports.Order{Program: c.Program, Name: c.Name, Config: c.LitellmConfig, Settings: c.Options, Models: c.Models,
		Catalog: c.WriteCatalog, DryRun: c.DryRun, Now: p.now()}
	if c.UnlimitedUSD != nil {
		in.Unlimited = c.UnlimitedUSD.amount.String()
	}
	if in.Source, err = p.orInput(c.Source, "the source"); err != nil {
		return err
	}
	report, err := imports.Run(p.ctx, settings, in)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	raw = append(raw, '\n')
	if c.Report != nil {
		if err := os.WriteFile(*c.Report, raw, 0o600); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
	}
	if !c.JSON && terminalWidth(p.stdout) > 0 {
		raw = []byte(report.Text())
	}
	if _, err := p.stdout.Write(raw); err != nil {
		return err
	}
	for _, step := range imports.NextSteps(in, report) {
		tell(p.stderr, step)
	}
	return nil
}
