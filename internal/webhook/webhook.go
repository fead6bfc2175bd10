// Package webhook owns receivers, events and their deliveries. Invariant: an
// event is written by the transaction of what it tells.
package webhook
