package main

// The views of the operator API's lists. docs/operator.md describes the members.

func accountsView() view {
	return view{
		tableColumns: []string{"id", "name", "balance_usd", "held_usd", "disabled", "email", "created", "overdraft_floor_usd",
			"price_factor"},
		csvColumns: []string{"id", "name", "email", "disabled", "balance_usd", "held_usd", "over_hold_usd", "overdraft_floor_usd",
			"price_factor", "prices", "test", "created"},
	}
}

func entriesView() view {
	return view{
		tableColumns: []string{"created", "kind", "usd", "balance_usd", "model", "note", "reference", "request_id", "job_id"},
		csvColumns:   []string{"id", "kind", "usd", "balance_usd", "request_id", "job_id", "model", "note", "created", "reference"},
	}
}

func keysView() view {
	return view{
		tableColumns: []string{"id", "name", "hint", "disabled", "spent_usd", "spent_today_usd", "last_used", "rpm", "daily_budget_usd",
			"total_limit_usd", "account"},
		csvColumns: []string{"id", "account", "name", "hint", "disabled", "rpm", "daily_budget_usd", "total_limit_usd", "allowed_models",
			"allowed_ips", "wait_for_pictures", "spent_today_usd", "spent_usd", "held_usd", "over_hold_usd", "last_used", "created"},
	}
}

func usersView() view {
	return view{
		tableColumns: []string{"id", "email", "disabled", "operator", "role", "created", "has_password", "second_factor"},
		csvColumns:   []string{"id", "account", "email", "disabled", "operator", "role", "has_password", "second_factor", "created"},
	}
}

func codesView() view {
	return view{
		tableColumns: []string{"id", "code", "hint", "usd", "state", "expires", "created", "account", "redeemed", "batch"},
		csvColumns:   []string{"id", "batch", "hint", "usd", "state", "account", "redeemed", "expires", "created"},
	}
}

func deliveriesView() view {
	return view{
		tableColumns: []string{"id", "type", "state", "created", "next_attempt_at", "attempts", "url"},
		csvColumns:   []string{"id", "event_id", "type", "url", "state", "attempts", "next_attempt_at", "created"},
	}
}

func mailsView() view {
	return view{
		tableColumns: []string{"id", "kind", "to", "state", "created", "sent", "next_attempt_at", "attempts", "error", "subject"},
		csvColumns:   []string{"id", "kind", "account", "to", "subject", "state", "attempts", "error", "next_attempt_at", "sent", "created"},
	}
}

func secretsView() view {
	return view{
		tableColumns: []string{"name", "lines", "changed", "key", "problem"},
		csvColumns:   []string{"name", "lines", "key", "problem", "changed"},
	}
}

func requestsView() view {
	return view{
		tableColumns: []string{"id", "created", "status", "cost_usd", "model", "code", "line", "duration_ms", "prompt_tokens",
			"completion_tokens", "account", "key"},
		csvColumns: []string{"id", "account", "key", "model", "endpoint", "status", "code", "line", "attempts", "prompt_tokens",
			"cached_tokens", "completion_tokens", "cost_usd", "held_usd", "over_hold_usd", "line_cost_usd", "first_byte_ms",
			"duration_ms", "created", "stands_for", "ended", "outcome", "job_id", "usage_source", "image_count", "clip_count",
			"video_seconds", "catalog_revision", "price", "price_unit", "price_factor"},
	}
}

func jobsView() view {
	return view{
		tableColumns: []string{"id", "created", "status", "cost_usd", "model", "line", "ended", "held_usd", "account", "key"},
		csvColumns: []string{"id", "object", "created", "model", "status", "account", "key", "request_id", "line", "attempts", "steps",
			"held_usd", "cost_usd", "over_hold_usd", "line_cost_usd", "started", "ended", "node", "node_host", "error"},
	}
}

func linesView() view {
	return view{
		tableColumns: []string{"id", "state", "in_flight", "success_rate", "first_byte_ms", "cause", "cooling_until", "provider"},
		writeBelow:   writeModelStates,
		csvColumns: []string{"id", "provider", "state", "cooling_until", "models_out", "models_cooling", "forms_out", "model_states", "in_flight",
			"max_concurrent", "recent_attempts", "success_rate", "first_byte_ms", "cause", "cause_at", "models", "nodes",
			"over_hold_usd"},
		emptyText: "No node has reported the state of its lines: no node is running, or it has just started.",
	}
}

func usageView() view {
	return view{tableColumns: []string{"requests", "cost_usd", "line_cost_usd", "margin_usd", "failed_requests", "prompt_tokens",
		"completion_tokens", "cached_tokens", "image_count", "clip_count", "video_seconds"}}
}
