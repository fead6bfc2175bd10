package admin

import (
	"slices"
	"strings"
)

// route is one method of one path and who answers it.
type route struct {
	method, path string
	handle       func(*call) (any, error)
}

// branch is one segment of the paths that exist.
type branch struct {
	next    map[string]*branch // by segment; "{id}" for any
	methods map[string]route
}

// plant arranges routes by the segments of their paths.
func plant(routes []route) *branch {
	root := &branch{}
	for _, r := range routes {
		b := root
		for segment := range strings.SplitSeq(strings.TrimPrefix(r.path, "/"), "/") {
			if b.next == nil {
				b.next = make(map[string]*branch)
			}
			if b.next[segment] == nil {
				b.next[segment] = &branch{}
			}
			b = b.next[segment]
		}
		if b.methods == nil {
			b.methods = make(map[string]route)
		}
		b.methods[r.method] = r
	}
	return root
}

// find returns the methods of a path, nil if it does not exist, and the
// segment that stands for {id}.
func (b *branch) find(path string) (methods map[string]route, id string) {
	path, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, ""
	}
	for segment := range strings.SplitSeq(path, "/") {
		next := b.next[segment]
		if next == nil || segment == "{id}" {
			next = b.next["{id}"]
			id = segment
		}
		if next == nil || segment == "" {
			return nil, ""
		}
		b = next
	}
	return b.methods, id
}

// allowed lists methods as an Allow header does. HEAD goes with GET.
func allowed(methods map[string]route) string {
	var list []string
	for method := range methods {
		list = append(list, method)
		if method == "GET" {
			list = append(list, "HEAD")
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
