// Package media owns result and reference files: where they are kept, their links, who may
// read them and for how long.
//
// Invariants: a file is there whole or not at all; no link leads to a file that
// its job has not published; names cannot be guessed.
package media
