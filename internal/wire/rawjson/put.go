package rawjson

// Put appends before, a JSON value as it is, and after. If before and after have quotes, value is
// the content of a string.
func Put[V ~string | ~[]byte](dst []byte, before string, value V, after string) []byte {
	dst = append(dst, before...)
	dst = append(dst, value...)
	return append(dst, after...)
}
