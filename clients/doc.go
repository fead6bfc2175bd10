// Package clients tests the built binary with the official OpenAI and Anthropic clients for Go,
// Node and Python, and with coding agents. It is a separate module, so that the product does not
// depend on the clients. Invariant: no test imports a package of the product; tests check only the
// clients' view.
package clients
