package wire_test

import "flag"

var update = flag.Bool("update", false, "write the golden sections of testdata anew")
