//go:build !race

package pairtest

// seeds is the number of random sequences of EachSeed.
const seeds = 2000
