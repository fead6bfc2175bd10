package wire

import "flag"

var update = flag.Bool("update", false, "write what the scenarios of testdata come to anew")
