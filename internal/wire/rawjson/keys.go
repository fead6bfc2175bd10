package rawjson

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
)

const (
	// maxOpenKeys bounds the keys of an object and of all objects around it
	// together: what the search for repeated keys remembers at a time.
	maxOpenKeys = 1 << 17
	// fewKeys is how many keys an object may have before they are looked up in
	// a table: up to there comparing them one by one is faster.
	fewKeys = 12
	// firstTable is how long the table is at first.
	firstTable = 64
)

// openKeys are the keys seen so far of the objects that are open, the outermost
// first. Those of objects with many keys stand in a table too. Keys come and go
// as on a stack, so that a table with linear probing needs no marks for those
// that have gone. The hash is seeded: nobody can choose keys that collide.
type openKeys struct {
	keys    []openKey
	objects []int // where the keys of each open object begin
	seed    maphash.Seed
	table   []uint32 // places in keys, counted from 1; 0 is free; a power of two long
	tabled  int      // how many of keys stand in the table

	repeated int // where the first repeated key stands; 0: none was found
	tooMany  bool

	watched *watched // nil if no keys are watched
}

// openKey is a key without its escapes, and its hash if it stands in the table.
type openKey struct {
	name []byte
	hash uint64 // 0: it does not
}

// enter begins an object inside the present one.
func (o *openKeys) enter() { o.objects = append(o.objects, len(o.keys)) }

// leave ends the innermost object.
func (o *openKeys) leave() {
	first := o.objects[len(o.objects)-1]
	o.objects = o.objects[:len(o.objects)-1]
	for i := len(o.keys) - 1; i >= first && o.keys[i].hash != 0; i-- {
		at := o.keys[i].hash
		for o.table[o.at(at)] != uint32(i)+1 {
			at++
		}
		o.table[o.at(at)] = 0
		o.tabled--
	}
	o.keys = o.keys[:first]
	if o.watched != nil {
		o.watched.leave(len(o.objects), first)
	}
}

// see takes in the key of the innermost object that stands in src with its
// quotes. False: there is nothing more to find, in this object or another.
func (o *openKeys) see(src []byte, from, to int) bool {
	name := src[from+1 : to-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(Unquote(src[from:to]))
	}
	switch {
	case !o.add(name):
		o.repeated = from
		return false
	case len(o.keys) > maxOpenKeys:
		o.tooMany = true
		return false
	}
	if o.watched != nil {
		o.look(name, from)
	}
	return true
}

// add adds a key to the innermost object; false when it was there already.
func (o *openKeys) add(name []byte) bool {
	first := o.objects[len(o.objects)-1]
	mine := o.keys[first:]
	if len(mine) < fewKeys {
		for i := range mine {
			if string(mine[i].name) == string(name) {
				return false
			}
		}
		o.keys = append(o.keys, openKey{name: name})
		return true
	}
	if len(mine) == fewKeys {
		for i := range mine {
			mine[i].hash = o.hash(mine[i].name, first)
		}
		for i := range mine {
			o.put(first + i)
		}
	}
	hash := o.hash(name, first)
	for at := hash; o.table[o.at(at)] != 0; at++ {
		// What stands behind first is of the innermost object.
		if i := int(o.table[o.at(at)]) - 1; i >= first && string(o.keys[i].name) == string(name) {
			return false
		}
	}
	o.keys = append(o.keys, openKey{name, hash})
	o.put(len(o.keys) - 1)
	return true
}

// put puts a key into the first free place behind its hash. The table is at
// most half full; a longer one is filled anew, in the same order.
func (o *openKeys) put(i int) {
	if 2*(o.tabled+1) > len(o.table) {
		o.table, o.tabled = make([]uint32, max(firstTable, 2*len(o.table))), 0
		for k := range i {
			if o.keys[k].hash != 0 {
				o.put(k)
			}
		}
	}
	at := o.keys[i].hash
	for o.table[o.at(at)] != 0 {
		at++
	}
	o.table[o.at(at)] = uint32(i) + 1
	o.tabled++
}

// at is a place in the table.
func (o *openKeys) at(hash uint64) int { return int(hash & uint64(len(o.table)-1)) }

// apart is a prime that spreads small numbers over 64 bits.
const apart = 1099511628211

// hash is never 0, and tells equal keys of two objects apart, so that they do
// not pile up.
func (o *openKeys) hash(name []byte, first int) uint64 {
	return maphash.Bytes(o.seed, name) + uint64(first)*apart | 1<<63
}

// Bounds of a path in a message.
const (
	maxPathSteps = 12
	maxPathName  = 64 // bytes
)

// pathTo is the path of the key that stands at the given place in valid JSON:
// `messages[2].content[0].type`. The middle of a very long one is left out.
func pathTo(src []byte, place int) string {
	type step struct {
		array bool
		index int // of the present element of an array, from 0
		key   int // where the present key of an object stands
	}
	var steps []step
	for i := 0; i <= place; i++ {
		switch src[i] {
		case '{', '[':
			steps = append(steps, step{array: src[i] == '['})
		case '}', ']':
			steps = steps[:len(steps)-1]
		case ',':
			steps[len(steps)-1].index++
		case '"':
			end := SkipText(src, i)
			if last := &steps[len(steps)-1]; !last.array && src[SkipSpace(src, end)] == ':' {
				last.key = i
			}
			i = end - 1
		}
	}
	var path strings.Builder
	for n, s := range steps {
		switch {
		case n == maxPathSteps/2 && len(steps) > maxPathSteps:
			path.WriteString(".…")
		case n > maxPathSteps/2 && n < len(steps)-maxPathSteps/2:
		case s.array:
			fmt.Fprintf(&path, "[%d]", s.index)
		default:
			name := unquoteKey(src, s.key)
			name = bytes.ToValidUTF8(name[:min(len(name), maxPathName)], nil)
			if path.Len() > 0 {
				path.WriteByte('.')
			}
			path.Write(name)
		}
	}
	return path.String()
}
