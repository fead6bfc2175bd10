// Package app owns the life of the process: settings, construction, the
// background loops and the order in which all of it stops.
package app
