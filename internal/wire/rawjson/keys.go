package rawjson

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"strings"
)

const (
	// maxOpenKeys bounds the keys of an object and the objects around it together, all of them
	// remembered in the search for repeated keys.
	maxOpenKeys = 1 << 17
	// fewKeys is the number of keys up to which comparing is faster than a table.
	fewKeys    = 12
	firstTable = 64
)

// openKeys holds the keys seen so far in the open objects, the outermost first. Objects with many
// keys use a hash table with linear probing. Keys come and go as on a stack, so the table needs no
// marks for removed keys. The hash is seeded, so a client cannot choose colliding keys.
type openKeys struct {
	keys     []openKey
	objects  []int // index in keys of the first key of each open object
	seed     maphash.Seed
	table    []uint32 // indexes in keys plus 1; 0 is free; the length is a power of two
	tableLen int      // number of keys in the table

	repeated int // offset of the first repeated key, or 0
	tooMany  bool

	watch *keyWatch // may be nil
}

// openKey is a key without its escapes.
type openKey struct {
	name []byte
	hash uint64 // 0 if the key is not in the table
}

// enter opens an object.
func (o *openKeys) enter() { o.objects = append(o.objects, len(o.keys)) }

// leave closes the innermost object.
func (o *openKeys) leave() {
	first := o.objects[len(o.objects)-1]
	o.objects = o.objects[:len(o.objects)-1]
	for i := len(o.keys) - 1; i >= first && o.keys[i].hash != 0; i-- {
		at := o.keys[i].hash
		for o.table[o.slot(at)] != uint32(i)+1 {
			at++
		}
		o.table[o.slot(at)] = 0
		o.tableLen--
	}
	o.keys = o.keys[:first]
	if o.watch != nil {
		o.watch.leave(len(o.objects), first)
	}
}

// visit adds the quoted key src[from:to] to the innermost object. It returns false once there is
// nothing more to find in any object.
func (o *openKeys) visit(src []byte, from, to int) bool {
	name := keyText(src[from:to])
	switch {
	case !o.add(name):
		o.repeated = from
		return false
	case len(o.keys) > maxOpenKeys:
		o.tooMany = true
		return false
	}
	if o.watch != nil {
		o.check(name, from)
	}
	return true
}

// add adds a key to the innermost object. It returns false if the object has it already.
func (o *openKeys) add(name []byte) bool {
	first := o.objects[len(o.objects)-1]
	own := o.keys[first:]
	if len(own) < fewKeys {
		for i := range own {
			if string(own[i].name) == string(name) {
				return false
			}
		}
		o.keys = append(o.keys, openKey{name: name})
		return true
	}
	if len(own) == fewKeys {
		for i := range own {
			own[i].hash = o.hash(own[i].name, first)
		}
		for i := range own {
			o.put(first + i)
		}
	}
	hash := o.hash(name, first)
	for at := hash; o.table[o.slot(at)] != 0; at++ {
		// Keys from first on belong to the innermost object.
		if i := int(o.table[o.slot(at)]) - 1; i >= first && string(o.keys[i].name) == string(name) {
			return false
		}
	}
	o.keys = append(o.keys, openKey{name, hash})
	o.put(len(o.keys) - 1)
	return true
}

// put inserts key i into the table. The table is at most half full; to grow, it is filled again in
// the same order.
func (o *openKeys) put(i int) {
	if 2*(o.tableLen+1) > len(o.table) {
		o.table, o.tableLen = make([]uint32, max(firstTable, 2*len(o.table))), 0
		for k := range i {
			if o.keys[k].hash != 0 {
				o.put(k)
			}
		}
	}
	at := o.keys[i].hash
	for o.table[o.slot(at)] != 0 {
		at++
	}
	o.table[o.slot(at)] = uint32(i) + 1
	o.tableLen++
}

// slot returns the table index of a hash.
func (o *openKeys) slot(hash uint64) int { return int(hash & uint64(len(o.table)-1)) }

// spread is a prime to spread small numbers over 64 bits.
const spread = 1099511628211

// hash returns the hash of a key, which is never 0. It differs between equal keys of two objects to avoid
// clusters.
func (o *openKeys) hash(name []byte, first int) uint64 {
	return maphash.Bytes(o.seed, name) + uint64(first)*spread | 1<<63
}

// Bounds of a path in an error message.
const (
	maxPathSteps = 12
	maxPathName  = 64 // bytes
)

// pathTo returns the path of the key at offset in valid JSON: `messages[2].content[0].type`. The middle of a
// very long path is left out.
func pathTo(src []byte, offset int) string {
	type step struct {
		array bool
		index int // of the current array element, from 0
		key   int // offset of the current key of an object
	}
	var steps []step
	for i := 0; i <= offset; i++ {
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
