package partition

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
)

// cluster has nodes on one PostgreSQL database. Each node connects to the database through its own
// proxy. The catalog has two chat models and an image model.
type cluster struct {
	t        testing.TB
	binary   string
	database string // the address without a proxy
	db       *sql.DB
	nodes    []*node
	provider *fakeprovider.Server
	studio   *fakestudio.Fal
	gate     chan struct{} // releases the answers of requests with fateGated
	steps    chan struct{} // releases each piece of a stream with fateSteps
	tags     atomic.Int64
	chats    []*chatClient
	probe    *chatClient // the first client; checks whether a node works
	jobs     []*jobClient
}

type node struct {
	*scene.Node
	proxy *faultproxy.Proxy
	epoch string // of the node's first process

	mu sync.RWMutex // guards Node, which revive replaces
}

// address returns the base address of the node's current process.
func (n *node) address() string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.URL
}

// revive kills the node and starts it again.
func (n *node) revive() {
	n.Kill()
	p := *n.Node
	p.Restart()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Node = &p
}

// The models of a cluster.
const (
	chatModel    = "talk"
	failingModel = "babble" // has its own line, because failures may take the line out of service
	imageModel   = "easel"
)

// newCluster starts nodes with a lease of the given duration.
func newCluster(t testing.TB, binary, database string, nodes int, lease string) *cluster {
	t.Helper()
	c := &cluster{t: t, binary: binary, database: database, provider: fakeprovider.New(t), studio: fakestudio.NewFal(t),
		gate: make(chan struct{}), steps: make(chan struct{})}
	c.provider.Always(c.chatReply)
	c.studio.Always(imageBehaviour)
	first := faultproxy.New(t, database)
	c.nodes = []*node{{Node: scene.NewNode(t, binary, first.URL(), map[string]string{"node_lease": lease}), proxy: first}}
	c.db = scene.OpenDatabase(t, database)
	c.nodes[0].epoch = c.newest()
	c.nodes[0].SetCatalog(
		[]map[string]any{scene.ChatModel(chatModel, nil), scene.ChatModel(failingModel, nil), scene.ImageModel(imageModel, nil)},
		[]map[string]any{
			scene.ChatLine("good", c.provider.URL(), nil, chatModel),
			scene.ChatLine("failing", c.provider.URL(), nil, failingModel),
			fakestudio.ProviderOf(t, "fal").JobLine("image", c.studio, "image", nil, imageModel),
		})
	c.probe = c.newChatClient()
	for range nodes - 1 {
		c.join()
	}
	return c
}

// join starts another node.
func (c *cluster) join() *node {
	c.t.Helper()
	proxy := faultproxy.New(c.t, c.database)
	p := *c.nodes[0].Node
	p.Settings = maps.Clone(p.Settings)
	p.Settings["database"] = proxy.URL()
	p.Restart()
	n := &node{Node: &p, proxy: proxy, epoch: c.newest()}
	c.nodes = append(c.nodes, n)
	return n
}

// queryValue reads a single value from the database into into.
func (c *cluster) queryValue(into any, query string, args ...any) {
	c.t.Helper()
	if err := c.db.QueryRowContext(c.t.Context(), query, args...).Scan(into); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
}

// newest returns the epoch of the newest node.
func (c *cluster) newest() (epoch string) {
	c.t.Helper()
	c.queryValue(&epoch, `SELECT epoch FROM node WHERE dead = 0 ORDER BY started_ms DESC, epoch DESC LIMIT 1`)
	return epoch
}

// held returns the number of holds.
func (c *cluster) held() (n int) {
	c.t.Helper()
	c.queryValue(&n, `SELECT COUNT(*) FROM ledger_hold`)
	return n
}

// waitSwept waits until a node's first process is declared dead and has no holds.
func (c *cluster) waitSwept(n *node) {
	c.t.Helper()
	dead := soon(c.t, "the node is declared dead and swept", func() bool {
		var left int
		c.queryValue(&left, `SELECT (SELECT COUNT(*) FROM node WHERE epoch = $1 AND dead = 0)
			+ (SELECT COUNT(*) FROM ledger_hold WHERE epoch = $1)`, n.epoch)
		return left == 0
	})
	if !dead {
		c.t.FailNow()
	}
}

// chatText matches the text of a chat request: a tag, the tokens of the prompt and of the
// completion, and the fate.
var chatText = regexp.MustCompile(`(tag-\d+) p=(\d+) c=(\d+) fate (\w+)`)

// The fate of a chat request decides how the provider answers.
const (
	fateFine   = "fine"
	fateSlow   = "slow"   // with the complete answer, within about two seconds
	fateGated  = "gated"  // with the complete answer, when the cluster's gate releases it
	fateSteps  = "steps"  // with a stream whose pieces the cluster's steps release
	fateFails  = "fails"  // with an error
	fateBreaks = "breaks" // with an answer that breaks off
)

// chatReply returns the chat provider's reply to a request, according to the request's fate.
func (c *cluster) chatReply(r fakeprovider.Request) fakeprovider.Reply {
	m := chatText.FindSubmatch(r.Body)
	if m == nil {
		return fakeprovider.Error(400, "invalid_request_error", "", "no tag")
	}
	prompt, _ := strconv.Atoi(string(m[2])) // digits
	completion, _ := strconv.Atoi(string(m[3]))
	streamed := bytes.Contains(r.Body, []byte(`"stream":true`))
	reply := fakeprovider.Answer("all is well", prompt, completion)
	if streamed {
		reply = fakeprovider.Stream(prompt, completion, "all ", "is ", "well", ", ", "is ", "it", "?")
	}
	switch fate := string(m[4]); {
	case fate == fateSteps:
		reply.Gate = c.steps
	case fate == fateGated:
		reply.Wait = c.gate
	case fate == fateFails:
		return fakeprovider.Error(500, "server_error", "", "down")
	case fate == fateBreaks && streamed:
		reply.Events, reply.End = reply.Events[:4], fakeprovider.Cut
	case fate == fateBreaks:
		reply.Length = len(reply.Body) + 10
	case fate == fateSlow && streamed:
		reply.Gap = 200 * time.Millisecond
	case fate == fateSlow:
		reply.Delay = 700 * time.Millisecond
	}
	return reply
}

// unsafeJob is the part of a prompt that makes the provider reject the job.
const unsafeJob = "fate unsafe"

// imageBehaviour returns how the image provider handles a job.
func imageBehaviour(body []byte) fakestudio.Behaviour {
	if strings.Contains(string(body), unsafeJob) {
		return fakestudio.Failure(`{"status":422,"header":{"X-Fal-Retryable":"false"},
			"body":{"detail":[{"loc":["body","prompt"],"msg":"flagged","type":"content_policy_violation"}]}}`)
	}
	return fakestudio.Behaviour{}
}

// tag returns a new tag for a request.
func (c *cluster) tag() string { return fmt.Sprintf("tag-%06d", c.tags.Add(1)) }

// audit runs the audit command on the database and fails the test if it finds a difference.
func (c *cluster) audit() {
	c.t.Helper()
	scene.CheckBooks(c.t, c.binary, map[string]string{"database": c.database})
}
