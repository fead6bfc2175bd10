// Package show owns the content common to both sections of the console: keys, movements, usage,
// deliveries, sessions, the outcomes of requests (also as a text for the customer), and examples of
// API calls.
//
// Invariants: both sections use the same words and the same components for the same thing; only
// operatorpages adds content for operators.
package show
