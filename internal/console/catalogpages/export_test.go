package catalogpages

import "tollgate/internal/console/part"

// ToBeginWith are the examples of the editor.
func ToBeginWith() part.Snippets { return examples() }
