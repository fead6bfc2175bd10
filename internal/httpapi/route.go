package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"tollgate/internal/fault"
)

// Route is one method, or all methods, of one path.
type Route struct {
	// Pattern is a pattern of http.ServeMux: `METHOD /path`, or `/path` for any method. {id} stands
	// for one segment, and {id...} for the rest of the path; see Exchange.PathID. GET includes
	// HEAD. `{id...}:verb` stands for a rest of the path that ends in `:verb`, as in Google's APIs.
	Pattern string
	// Handle answers the request. It may return an error only if it has written nothing.
	Handle func(*Exchange) error
}

// router finds the route of a request.
type router struct {
	mux      *http.ServeMux
	notFound func(*http.Request) error
}

// newRouter registers one pattern per path, without methods, because in http.ServeMux a path for any
// method conflicts with a path with {id} for some methods.
func newRouter(routes []Route, notFound func(*http.Request) error) router {
	paths := make(map[string]methods)
	verbs := make(map[string]map[string]muxHandler) // by the path without the verb
	for _, r := range routes {
		method, path := r.split()
		if paths[path] == nil {
			paths[path] = make(methods)
		}
		paths[path][method] = r.Handle
	}
	mux := http.NewServeMux()
	mux.Handle("/", muxHandler(func(x *Exchange) error { return notFound(x.Request) }))
	for path, m := range paths {
		if base, verb, found := strings.Cut(path, "}:"); found {
			base += "}"
			if verbs[base] == nil {
				verbs[base] = make(map[string]muxHandler)
			}
			verbs[base][verb] = m.handler(path)
		}
	}
	for path, m := range paths {
		pattern := path
		if path == "/" { // to the mux, "/" is every path
			pattern = "/{$}"
		}
		switch {
		case strings.Contains(path, "}:"):
		case verbs[path] != nil:
			mux.Handle(pattern, withVerbs(verbs[path], m.handler(path), notFound))
		default:
			mux.Handle(pattern, m.handler(path))
		}
	}
	return router{mux, notFound}
}

// withVerbs returns the handler of a path with verbs. other answers paths without a verb. A POST with an
// unknown verb is not found.
func withVerbs(verbs map[string]muxHandler, other muxHandler, notFound func(*http.Request) error) muxHandler {
	return func(x *Exchange) error {
		id := x.PathID()
		colon := strings.LastIndexByte(id, ':')
		if colon < 0 {
			return other(x)
		}
		if handle := verbs[id[colon+1:]]; handle != nil {
			x.Request.SetPathValue("id", id[:colon])
			return handle(x)
		}
		if x.Request.Method == http.MethodPost {
			return notFound(x.Request)
		}
		return other(x)
	}
}

// Endpoints returns the endpoints passed to Options.Observe for some routes: their paths, each
// once, and the name of all other paths.
func Endpoints(routes []Route) []string {
	all := []string{unknownEndpoint}
	for _, r := range routes {
		if _, path := r.split(); !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// split returns the method of the pattern, or "" for any method, and the path.
func (r Route) split() (method, path string) {
	method, path, found := strings.Cut(r.Pattern, " ")
	if !found {
		return "", r.Pattern
	}
	return method, path
}

// serve answers a request by its route. Unlike the mux, serve does not redirect an unclean path to its
// clean form, and treats an escaped slash like a slash.
func (m router) serve(x *Exchange) error {
	u := x.Request.URL
	if !strings.HasPrefix(u.Path, "/") || path.Clean(u.Path) != u.Path {
		return m.notFound(x.Request)
	}
	if u.RawPath != "" {
		r := *x.Request
		r.URL = &url.URL{Path: u.Path, RawQuery: u.RawQuery}
		x.Request = &r
	}
	m.mux.ServeHTTP(x, x.Request)
	return x.err
}

// RedirectTrailingSlash redirects a GET or HEAD of an unknown path with trailing slashes to the path
// without them, because people and proxies add slashes. For other requests it writes nothing and
// returns false.
func RedirectTrailingSlash(x *Exchange) bool {
	target := *x.Request.URL
	reads := x.Request.Method == http.MethodGet || x.Request.Method == http.MethodHead
	if x.endpoint != unknownEndpoint || !reads || !strings.HasSuffix(target.Path, "/") {
		return false
	}
	target.Path, target.RawPath = strings.TrimRight(target.Path, "/"), ""
	http.Redirect(x, x.Request, target.RequestURI(), http.StatusPermanentRedirect)
	return true
}

// muxHandler is a handler of the mux. The mux only knows writers, so x is passed as the writer.
type muxHandler func(*Exchange) error

// ServeHTTP implements http.Handler.
func (a muxHandler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	x := w.(*Exchange)
	x.err = a(x)
}

// methods maps the methods of one path to handlers. The empty method matches any method.
type methods map[string]func(*Exchange) error

// handler returns the handler of a path with these methods.
func (m methods) handler(path string) muxHandler {
	allow, endpoint := m.allowed(), strings.ReplaceAll(path, "...}", "}")
	return func(x *Exchange) error {
		method := x.Request.Method
		if method == http.MethodHead {
			method = http.MethodGet // net/http leaves the body out
		}
		handle := m[method]
		if handle == nil {
			handle = m[""]
		}
		if handle == nil {
			x.Header().Set("Allow", allow)
			return fault.New(fault.MethodNotAllowed, "This endpoint does not accept %s. Use %s.", fault.Excerpt(x.Request.Method), allow)
		}
		x.endpoint = endpoint
		return handle(x)
	}
}

// allowed returns the value of the Allow header. GET includes HEAD.
func (m methods) allowed() string {
	list := slices.Collect(maps.Keys(m))
	if m[http.MethodGet] != nil {
		list = append(list, http.MethodHead)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// notFound returns the default error for a path without a route.
func notFound(r *http.Request) error {
	return fault.New(fault.NotFound,
		"There is no endpoint at %s. Check the path and the base address of your client.", fault.Excerpt(r.URL.Path))
}
