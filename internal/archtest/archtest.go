// Package archtest owns the tests of the code's structure: allowed imports between rooms, table
// ownership, documentation of exported names, absence of package state, file sizes, and the reasons
// for dependencies. It has no other code. Invariant: each rule is written once, here or in a
// document read by its test (ARCHITECTURE.md, docs/adr), and a failure says what to do.
package archtest
