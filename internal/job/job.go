// Package job owns image and video jobs: submission, queue, lease, run, and the public job
// body. Invariants: see ARCHITECTURE.md, Invariants.
package job
