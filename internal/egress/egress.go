// Package egress owns the way out to addresses that users give: callbacks, webhooks, reference files.
//
// Invariants: only public addresses are reached, checked when an address is
// given and again at dial time on the address really dialled; no redirect is
// followed and no proxy of the environment used.
package egress
