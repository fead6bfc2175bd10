//go:build race

package pairtest

// seeds is smaller than without the race detector, which slows the sequences down and finds nothing in them.
const seeds = 300
