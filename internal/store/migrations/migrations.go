// Package migrations owns the schema: one numbered file for each migration. Package store applies the
// files.
//
// Invariant: a released migration never changes. Every later change is a new migration.
package migrations

import "embed"

// Files holds the migrations; their names sort in the order of application.
//
//go:embed *.sql
var Files embed.FS
