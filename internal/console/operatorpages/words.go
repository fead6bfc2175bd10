package operatorpages

// title is a word at a beginning.
func title(word string) string {
	if word == "" {
		return ""
	}
	return string(word[0]-'a'+'A') + word[1:]
}
