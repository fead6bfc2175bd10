// Package browser owns the tests that drive the built binary's console in a real
// Chromium: sign-in, forms, what scripts add, keyboard, phone, both themes.
// Invariants: a page of the console writes nothing to the browser's console,
// breaks no policy of its own, asks no other host for anything, is no wider than
// the screen, has no texts on each other, and is fine with axe.
package browser
