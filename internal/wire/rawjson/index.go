package rawjson

// maxIndexed is the capacity of an Index. Few objects read by name have more members.
const maxIndexed = 16

// Index holds the members of an object for several look-ups by name without a scan for each. The
// zero value has no members.
type Index struct {
	object  []byte
	members [maxIndexed]Member
	n       int
	more    bool // the object has further members
}

// Read fills an empty index. It retains object, which must not be changed.
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
			return NonNull(x.object[m.From:m.To])
		}
	}
	if x.more {
		return Field(x.object, name)
	}
	return nil
}
