// Package migrations owns the schema: a numbered file a step, which package store
// applies.
//
// Invariants:
//   - A step that was released never changes: what comes after is a step of its own.
package migrations

import "embed"

// Files are the steps, by their names in order.
//
//go:embed *.sql
var Files embed.FS
