package rawjson

// Put appends a piece of new JSON: a value as it stands, between two texts, each
// of which may be empty. The value is JSON, or the inside of a string whose
// quotes the texts have.
func Put[V ~string | ~[]byte](dst []byte, before string, value V, after string) []byte {
	dst = append(dst, before...)
	dst = append(dst, value...)
	return append(dst, after...)
}
