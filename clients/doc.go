// Package clients owns the tests that drive the built binary with the official
// OpenAI and Anthropic clients for Go, Node and Python and with coding agents,
// as a user would. It is a module of its own, so that the product depends on
// none of them. Invariant: nothing here imports the product's packages; what the
// clients see is all that is judged.
package clients
