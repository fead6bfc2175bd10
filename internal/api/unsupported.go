package api

import (
	"net/http"
	"strings"

	"tollgate/internal/fault"
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
	{"/v1/embeddings", "Embeddings are", ""},
	{"/v1/audio", "Speech and transcriptions are", ""},
	{"/v1/realtime", "Realtime sessions are", "POST /v1/chat/completions with `stream` sends the answer while it is generated"},
	{"/v1/files", "Stored files are", "Send files with the request itself, as data addresses"},
	{"/v1/uploads", "Stored files are", "Send files with the request itself, as data addresses"},
	{"/v1/batches", "Batches are", "Send their requests one by one; POST /v1/chat/completions and POST /v1/responses take them"},
	{"/v1/assistants", "Assistants are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/threads", "Threads are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/conversations", "Stored conversations are", "POST /v1/responses takes the whole conversation with each request"},
	{"/v1/fine_tuning", "Fine-tuning is", ""},
	{"/v1/moderations", "Moderations are", ""},
	{"/v1/completions", "Completions of a bare prompt are", "POST /v1/chat/completions takes the prompt as a message"},
	{"/v1/chat/completions", "Stored chat completions are", "Keep the answer of POST /v1/chat/completions: nothing is stored here"},
	{"/v1/responses", "Stored responses are", "Keep the answer of POST /v1/responses: nothing is stored here"},
	{"/v1/vector_stores", "Vector stores are", ""},
	{"/v1/containers", "Containers are", ""},
	{"/v1/evals", "Evals are", ""},
	{"/v1/organization", "The administration of an organization is", "GET /v1/usage shows what the account has spent"},
	{"/v1/projects", "The administration of projects is", "GET /v1/usage shows what the account has spent"},
	{"/v1/agents", "Hosted agents are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/chatkit", "ChatKit sessions are", "POST /v1/responses takes instructions, tools and the whole conversation"},
	{"/v1/skills", "Stored skills are", ""},
	{"/v1/vaults", "Vaults of credentials are", ""},
	{"/v1/webhook_endpoints", "Webhooks at this path are", "A submission of images or videos takes `callback_url`"},
	{"/v1/webhook_event_types", "Webhooks at this path are", "A submission of images or videos takes `callback_url`"},
	{"/v1/live", "Live sessions are", "POST /v1/chat/completions with `stream` sends the answer while it is generated"},
	{"/v1/safety", "Safety checks are", ""},
	{"/v1/decisions", "Decisions are", ""},
	{"/v1/content_provenance_checks", "Checks of content provenance are", ""},
	{"/v1/rerank", "Reranking is", ""},
	{"/v1/images/variations", "Variations of images are", "POST /v1/images/edits takes an image with a prompt"},
	{"/v1/videos", "Videos at this path are", "POST /v1/videos/generations generates one, and GET /v1/videos/jobs/{id} shows its state"},
	{"/v1/messages", "Messages below /v1 are", "POST /native/v1/messages takes them: the base address of that client ends in /native"},
	{"/v1/complete", "Completions of a bare prompt are", "POST /v1/chat/completions takes the prompt as a message"},
	{"/native/v1/complete", "Completions of a bare prompt are", "POST /native/v1/messages takes the prompt as a message"},
	{"/native/v1/messages/batches", "Batches are", "Send their requests one by one; POST /native/v1/messages takes them"},
	{"/native/v1/files", "Stored files are", "Send files with the request itself, in base64"},
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
	{"/native/v1/chat/completions", "Chat completions below /native are",
		"POST /v1/chat/completions takes them: the base address of that client ends in /v1"},
	{"/native/v1/responses", "Responses below /native are", "POST /v1/responses takes them: the base address of that client ends in /v1"},
}

// offeredEndpoints lists the endpoints in a sentence.
const offeredEndpoints = "The endpoints are chat (POST /v1/chat/completions, POST /v1/responses, POST /native/v1/messages), images " +
	"(POST /v1/images/generations, POST /v1/images/edits), videos (POST /v1/videos/generations), GET /v1/models and GET /v1/usage."

// basePaths lists the paths that clients append to a base address, with the end of that address.
// The first match wins.
var basePaths = []struct {
	base  string
	paths []string
}{
	{"/v1", []string{"/chat/completions", "/responses", "/images/generations", "/images/edits", "/videos/generations", "/models", "/usage"}},
	{"/native", []string{"/v1/messages", "/v1/messages/count_tokens", "/v1/models"}},
}

// intendedPath returns the path that the client meant and the required end of the base address, if
// the client's base address lacks its end, repeats it or has more. Both are empty if no path fits.
func intendedPath(path string) (right, base string) {
	for _, below := range basePaths {
		for _, p := range below.paths {
			switch bare := strings.TrimPrefix(p, "/v1"); path {
			case bare, below.base + bare, "/v1" + p, below.base + "/v1" + p, below.base + below.base + p:
				if right := below.base + p; path != right {
					return right, below.base
				}
			}
		}
	}
	return "", ""
}

// notFound returns the 404 of an unknown path. For an unsupported path of the official clients, the
// message lists the offered endpoints. For any other path it explains the path and the base address.
func notFound(r *http.Request) error {
	path := strings.TrimSuffix(r.URL.Path, "/")
	for _, u := range unsupportedPaths {
		if path != u.path && !strings.HasPrefix(path, u.path+"/") {
			continue
		}
		if u.instead == "" {
			return fault.New(fault.NotFound, "%s not offered here. %s", u.subject, offeredEndpoints)
		}
		return fault.New(fault.NotFound, "%s not offered here. %s.", u.subject, u.instead)
	}
	if right, base := intendedPath(path); right != "" {
		return fault.New(fault.NotFound, "There is no endpoint at %s. Use %s: the base address of your client must end in %s.",
			fault.Excerpt(r.URL.Path), right, base)
	}
	return fault.New(fault.NotFound,
		"There is no endpoint at %s. Check the path and the base address of your client; GET /docs lists the endpoints.",
		fault.Excerpt(r.URL.Path))
}
