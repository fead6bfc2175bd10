package operatorpages

// Examples exports examples for tests.
var Examples = examples
