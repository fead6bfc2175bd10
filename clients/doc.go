// Package clients owns the tests that drive the built binary with the official
// OpenAI clients for Go and Node, as a user would. It is a module of its own,
// so that the product depends on neither. Invariant: nothing here imports the
// product's packages; what the clients see is all that is judged.
package clients
