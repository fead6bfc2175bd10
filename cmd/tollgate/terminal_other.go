//go:build !unix

package main

import "io"

// terminalWidth is how many columns a terminal has; 0: it is none, as far as is
// known here.
func terminalWidth(io.Writer) int { return 0 }
