// Package browser tests the built binary's console in a real Chromium: sign-in, forms, scripts,
// keyboard, phone, both themes. Invariants: a page writes nothing to the browser's console, does
// not violate its own content security policy, sends no request to another host, is no wider than
// the screen, has no overlapping texts, and passes axe.
package browser
