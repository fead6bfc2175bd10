// Package archtest owns the rules about the code itself, as tests: which room
// may import which, which room may name which SQL table, that exported names
// are documented, that packages hold no state, how long a file may be, which
// modules we depend on and why. It has no other code. Invariant: each rule is
// written once, here or in the document that the test reads it from
// (ARCHITECTURE.md, docs/adr), and a failure says what to do.
package archtest
