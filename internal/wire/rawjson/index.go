package rawjson

// maxIndexed is how many members an Index keeps. Few objects that are read by
// name have more.
const maxIndexed = 16

// Index keeps the members of an object for several look-ups by name, each of
// which would walk the object otherwise. The zero value has no members.
type Index struct {
	object  []byte
	members [maxIndexed]Member
	n       int
	more    bool // the object has further members
}

// Read fills an empty index with the members of an object. The index keeps object,
// which must not be changed afterwards.
func (x *Index) Read(object []byte) {
	x.object = object
	for m := range Spans(object) {
		if x.n == maxIndexed {
			x.more = true
			return
		}
		x.members[x.n] = m
		x.n++
	}
}

// Field returns a member's value, or nil if the member is absent or null.
func (x *Index) Field(name string) []byte {
	for i := range x.members[:x.n] {
		if m := &x.members[i]; string(m.Name) == name {
			return Present(x.object[m.From:m.To])
		}
	}
	if x.more {
		return Field(x.object, name)
	}
	return nil
}
