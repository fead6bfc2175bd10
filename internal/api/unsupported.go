package api

import (
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
)

// unsupportedPath is a path of the official clients, with all paths below it, that the gateway does not
// offer.
type unsupportedPath struct {
	path    string
	subject string // subject and verb of the message, such as `Embeddings are`
	instead string // the alternative, if any
}

// unsupportedPaths are matched in this order: a longer path comes before its prefix.
var unsupportedPaths = []unsupportedPath{
	{"/v1/audio/voices", "Lists of voices are", ""},
	{"/v1/audio/voice_consents", "Consents of voices are", ""},
	{"/v1/realtime", "Realtime sessions are", "POST /v1/chat/completions with `stream` sends the answer while it is generated"},
	{"/v1/files", "Stored files are", "POST /v1/responses takes files in the request itself, as data addresses"},
	{"/v1/uploads", "Stored files are", "POST /v1/responses takes files in the request itself, as data addresses"},
	{"/v1/batches", "Batches are", "POST /v1/chat/completions and POST /v1/responses take their requests one by one"},
	{"/v1/assistants", "Assistants are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/threads", "Threads are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/conversations", "Stored conversations are", "POST /v1/responses takes the whole conversation with each request"},
	{"/v1/fine_tuning", "Fine-tuning is", ""},
	{"/v1/completions", "Completions of a bare prompt are", "POST /v1/chat/completions takes the prompt as a message"},
	{"/v1/chat/completions", "Stored chat completions are", "Keep the answer of POST /v1/chat/completions: nothing is stored here"},
	{"/v1/responses/compact", "Compaction of conversations is", "POST /v1/responses takes the whole conversation with each request"},
	{"/v1/responses", "Background responses are", "To cancel a response, close the connection of its POST /v1/responses"},
	{"/v1/vector_stores", "Vector stores are", ""},
	{"/v1/containers", "Containers are", ""},
	{"/v1/evals", "Evals are", ""},
	{"/v1/organization", "The administration of an organization is", "GET /v1/usage shows what the account has spent"},
	{"/v1/projects", "The administration of projects is", "GET /v1/usage shows what the account has spent"},
	{"/v1/agents", "Hosted agents are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/chatkit", "ChatKit sessions are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/skills", "Stored skills are", ""},
	{"/v1/vaults", "Vaults of credentials are", ""},
	{"/v1/webhook_endpoints", "Webhooks at this path are", "POST /v1/images/generations takes `callback_url`"},
	{"/v1/webhook_event_types", "Webhooks at this path are", "POST /v1/images/generations takes `callback_url`"},
	{"/v1/live", "Live sessions are", "POST /v1/chat/completions with `stream` sends the answer while it is generated"},
	{"/v1/safety", "Safety checks are", ""},
	{"/v1/decisions", "Decisions are", ""},
	{"/v1/content_provenance_checks", "Checks of content provenance are", ""},
	{"/v1/images/variations", "Variations of images are", "POST /v1/images/edits takes an image with a prompt"},
	{"/v1/videos", "Videos at this path are", "POST /v1/videos/generations generates one, and GET /v1/videos/jobs/{id} shows its state"},
	{"/v1/complete", "Completions of a bare prompt are", "POST /v1/chat/completions takes the prompt as a message"},
	{"/native/v1/complete", "Completions of a bare prompt are", "POST /native/v1/messages takes the prompt as a message"},
	{"/native/v1/messages/batches", "Batches are", "POST /native/v1/messages takes their requests one by one"},
	{"/native/v1/files", "Stored files are", "POST /native/v1/messages takes files in the request itself, in base64"},
	{"/native/v1/skills", "Stored skills are", ""},
	{"/native/v1/agents", "Hosted agents are", "POST /native/v1/messages takes the system prompt, tools and the whole conversation"},
	{"/native/v1/sessions", "Sessions of hosted agents are", "POST /native/v1/messages takes the whole conversation with each request"},
	{"/native/v1/environments", "Environments of hosted agents are", ""},
	{"/native/v1/deployments", "Deployments of hosted agents are", ""},
	{"/native/v1/deployment_runs", "Deployments of hosted agents are", ""},
	{"/native/v1/memory_stores", "Stores of memory are", "POST /native/v1/messages takes the whole conversation with each request"},
	{"/native/v1/dreams", "Dreams are", ""},
	{"/native/v1/vaults", "Vaults of credentials are", ""},
	{"/native/v1/tunnels", "Tunnels are", ""},
	{"/native/v1/user_profiles", "User profiles are", ""},
	{"/native/v1/organizations", "The administration of an organization is", "GET /v1/usage shows what the account has spent"},
	{"/v1beta/interactions", "Gemini's interactions are", "POST /v1/responses takes the whole conversation with each request"},
	{"/v1beta/files", "Stored files are", "POST /v1beta/models/{id}:generateContent takes files in the request itself, as inlineData"},
	{"/v1beta/cachedContents", "Stored prompts are",
		"POST /v1beta/models/{id}:generateContent takes the whole conversation with each request"},
	{"/v1beta", "This part of Gemini's interface is", "POST /v1beta/models/{id}:generateContent answers for the models of every provider"},
}

// knownPaths has the paths of the routes, for the error messages of other paths.
type knownPaths struct {
	paths    []string // paths without an id, in the order of the routes
	parents  []string // parts of paths before an id, such as /v1/models/
	sentence string   // the routes without an id
}

func newKnownPaths(routes []httpapi.Route) *knownPaths {
	k := &knownPaths{}
	var offered []string
	for _, r := range routes {
		_, path, _ := strings.Cut(r.Pattern, " ")
		if parent, _, byID := strings.Cut(path, "{"); byID {
			k.parents = append(k.parents, parent)
			continue
		}
		k.paths = append(k.paths, path)
		offered = append(offered, r.Pattern)
	}
	last := len(offered) - 1
	k.sentence = "The endpoints are " + strings.Join(offered[:last], ", ") + " and " + offered[last]
	return k
}

// has reports whether path is the path of a route.
func (k *knownPaths) has(path string) bool {
	return slices.Contains(k.paths, path) ||
		slices.ContainsFunc(k.parents, func(parent string) bool { return len(path) > len(parent) && strings.HasPrefix(path, parent) })
}

// familyOfPath matches the beginning of a path that clients have in their base address.
var familyOfPath = regexp.MustCompile(`^(/native)?(/v[0-9]+(?:beta)?)`)

// wrongBase is a path of a client with a wrong base address.
type wrongBase struct {
	right         string // the path that the client meant
	root, version string // the two parts of its family: /native or nothing, and /v1
	below         string // the rest of right
	prefix        string // the path before below
}

// wrongBase finds a route whose path without its family is the end of path. Of several routes, it
// prefers one in the family of path, and then one whose version precedes that end.
func (k *knownPaths) wrongBase(path string) (best wrongBase, found bool) {
	rank := 0
	for _, right := range k.paths {
		parts := familyOfPath.FindStringSubmatch(right)
		prefix, ok := strings.CutSuffix(path, right[len(parts[0]):])
		if !ok {
			continue
		}
		w := wrongBase{right: right, root: parts[1], version: parts[2], below: right[len(parts[0]):], prefix: prefix}
		score := 1
		if fault.IsNative(path) == fault.IsNative(right) {
			score += 2
		}
		if w.hasVersion() {
			score++
		}
		if score > rank {
			best, rank = w, score
		}
	}
	return best, rank > 0
}

// hasVersion reports whether the client may have appended the version itself.
func (w wrongBase) hasVersion() bool { return strings.HasSuffix(w.prefix, w.version) }

// advice returns the base address that the client needs. If the version precedes w.below, the client
// may have appended the version itself, so advice names an address for either case.
func (w wrongBase) advice() string {
	text := fmt.Sprintf("Use %s: the base address of your client must end in %s%s", w.right, w.root, w.version)
	switch {
	case !w.hasVersion():
		return text + "."
	case w.root == "":
		return text + fmt.Sprintf(" if the client appends %s, and before %s if it appends %s%s.", w.below, w.version, w.version, w.below)
	}
	return text + fmt.Sprintf(" if the client appends %s, and in %s if it appends %s%s.", w.below, w.root, w.version, w.below)
}

// notFound returns the 404 of an unknown path. Its message names a path that is offered: the one
// that the client meant, an alternative to an unsupported path of the official clients, or all.
func (k *knownPaths) notFound(r *http.Request) error {
	sent := r.URL.Path
	clean := path.Clean(sent)
	unknown := "There is no endpoint at " + fault.Excerpt(sent) + ". "
	if clean != sent && k.has(clean) {
		return fault.New(fault.NotFound, "%s%s", unknown, slashAdvice(sent, clean))
	}
	wrong, found := k.wrongBase(clean)
	if found && k.has(wrong.prefix) { // the base address is an endpoint
		return fault.New(fault.NotFound, "%s%s", unknown, wrong.advice())
	}
	for _, u := range unsupportedPaths {
		if clean != u.path && !strings.HasPrefix(clean, u.path+"/") {
			continue
		}
		if u.instead == "" {
			return fault.New(fault.NotFound, "%s not offered here. %s.", u.subject, k.sentence)
		}
		return fault.New(fault.NotFound, "%s not offered here. %s.", u.subject, u.instead)
	}
	if found {
		return fault.New(fault.NotFound, "%s%s", unknown, wrong.advice())
	}
	return fault.New(fault.NotFound, "%sCheck the path and the base address of your client. %s; GET /docs describes them.",
		unknown, k.sentence)
}

// slashAdvice explains the superfluous slashes of a path.
func slashAdvice(sent, clean string) string {
	switch {
	case strings.Contains(sent, "//"):
		return "Use " + clean + ": remove the slash at the end of your client's base address."
	case strings.HasSuffix(sent, "/"):
		return "Use " + clean + ", without a slash at its end."
	}
	return "Use " + clean + "."
}

// refuseUpgrade answers a WebSocket at the path of responses with 426, which makes clients use
// HTTP at once. After a 405 they would try again.
func refuseUpgrade(x *httpapi.Exchange) error {
	if x.Request.Method != http.MethodGet || x.Request.URL.Path != "/v1/responses" ||
		!strings.EqualFold(x.Request.Header.Get("Upgrade"), "websocket") {
		return nil
	}
	x.Header().Set("Upgrade", "HTTP/1.1")
	x.Header().Set("Connection", "Upgrade")
	e := fault.New(fault.InvalidRequest,
		"WebSockets are not offered here. POST /v1/responses with `stream` sends the answer while it is generated.")
	e.Rejection = &fault.Rejection{Status: http.StatusUpgradeRequired, Type: e.Type()}
	return e
}
