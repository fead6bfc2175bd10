// Package show owns how the console shows what both of its sides show: keys,
// movements, usage, deliveries, sessions, how a request ended (also as a text to the one
// who sent it), ways to use a key.
//
// Invariants: a thing is called by the same words, and looks the same, on both sides;
// what only operators may see of it is theirs to add.
package show
