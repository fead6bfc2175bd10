package operatorpages

import "strings"

// stateWords are those of a state, as the rooms write it: in_service.
func stateWords(state string) string { return strings.ReplaceAll(state, "_", " ") }

// title is a word at a beginning.
func title(word string) string {
	if word == "" {
		return ""
	}
	return string(word[0]-'a'+'A') + word[1:]
}
