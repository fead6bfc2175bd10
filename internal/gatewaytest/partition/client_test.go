package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
)

// chatClient is a client of chat with its own account and a record of its requests.
type chatClient struct {
	cluster      *cluster
	client       *http.Client
	account, key string

	mu    sync.Mutex
	calls []*chatCall
}

// chatCall is a request and its result.
type chatCall struct {
	tag    string
	stream bool
	fate   string
	cost   money.Amount // cost of the complete answer
	node   *node
	answer scene.Answer // the zero value if no answer began
}

// The outcomes of a call.
const (
	outcomeNone     = "nothing"
	outcomeError    = "an error"
	outcomeCut      = "an answer that broke off"
	outcomeComplete = "a complete answer"
)

// outcome classifies the client's answer.
func (call *chatCall) outcome() string {
	switch a := call.answer; {
	case a.Status == 0:
		return outcomeNone
	case a.Status >= 400:
		return outcomeError
	case a.Whole():
		return outcomeComplete
	}
	return outcomeCut
}

func (call *chatCall) String() string {
	a := call.answer
	return fmt.Sprintf("%s (streamed %t, fate %s, %s) got %s: %d %s %s",
		call.tag, call.stream, call.fate, a.ID, call.outcome(), a.Status, a.Err, a.Text)
}

// creditUSD is the balance of each account in dollars.
const creditUSD = 1000

// patience is the time that a client waits for an answer. It is longer than any fault.
const patience = 2 * time.Minute

// newChatClient opens an account for a client of chat.
func (c *cluster) newChatClient() *chatClient {
	c.t.Helper()
	a := &chatClient{cluster: c, client: newPatientClient(c)}
	a.account, a.key = c.nodes[0].Account(creditUSD, nil)
	c.chats = append(c.chats, a)
	return a
}

// newPatientClient returns a client with its own connections and the timeout patience.
func newPatientClient(c *cluster) *http.Client {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: patience}
	c.t.Cleanup(client.CloseIdleConnections)
	return client
}

// send sends a request to a node and reads its answer to the end, or until ctx
// ends.
func (c *chatClient) send(ctx context.Context, n *node, stream bool, fate string) *chatCall {
	prompt, completion := 500+rand.IntN(500), 100+rand.IntN(400)
	call := &chatCall{tag: c.cluster.tag(), stream: stream, fate: fate, node: n, cost: money.Amount(1000*prompt + 2000*completion)}
	model := chatModel
	if fate == fateFails || fate == fateBreaks {
		model = failingModel
	}
	request := fmt.Sprintf(`{"model":%q,"max_tokens":500,"stream":%t,"messages":[{"role":"user","content":"%s p=%d c=%d fate %s"}]}`,
		model, stream, call.tag, prompt, completion, fate)
	call.answer, _ = scene.SendChat(ctx, c.client, n.address()+"/v1/chat/completions", c.key, request) // a missing answer is a result, too
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	return call
}

// start is like send, but returns at once.
func (c *chatClient) start(n *node, stream bool, fate string) <-chan *chatCall {
	done := make(chan *chatCall, 1)
	go func() { done <- c.send(c.cluster.t.Context(), n, stream, fate) }()
	return done
}

// sendUntilHit sends a request to a node and waits until the fault hits. If the request is rejected
// before the fault, for example under overload, sendUntilHit sends another request.
func (c *chatClient) sendUntilHit(hit *faultproxy.Hit, n *node, stream bool) <-chan *chatCall {
	c.cluster.t.Helper()
	done := c.start(n, stream, fateFine)
	scene.Eventually(c.cluster.t, "the fault hits the COMMIT", func() bool {
		if len(done) > 0 && !hit.Happened() {
			done = c.start(n, stream, fateFine)
		}
		return hit.Happened()
	})
	return done
}

// jobClient is a client of jobs with its own account and a record of its submissions.
type jobClient struct {
	scene.Customer

	mu     sync.Mutex
	orders []*jobOrder
}

// jobOrder is a job to submit.
type jobOrder struct {
	tag         string
	unsafe      bool
	id          string      // of the job, if the order was accepted
	lostReplies int         // attempts without an answer; the job may exist
	lastReply   scene.Reply // the last answer
}

// settled reports whether the client knows the outcome: the job's id, or that there is no job.
func (o *jobOrder) settled() bool {
	return o.id != "" || o.lostReplies == 0 && o.lastReply.Status >= 400
}

func (o *jobOrder) String() string {
	return fmt.Sprintf("%s (job %q, %d tries without an answer), last answer %s", o.tag, o.id, o.lostReplies, o.lastReply)
}

// newJobClient opens an account for a client of jobs.
func (c *cluster) newJobClient() *jobClient {
	c.t.Helper()
	p := *c.nodes[0].Node
	p.Client = newPatientClient(c)
	s := &jobClient{Customer: scene.Customer{Node: &p}}
	s.ID, s.Key = p.Account(creditUSD, nil)
	c.jobs = append(c.jobs, s)
	return s
}

// order records a new order.
func (s *jobClient) order(c *cluster, unsafe bool) *jobOrder {
	o := &jobOrder{tag: c.tag(), unsafe: unsafe}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = append(s.orders, o)
	return o
}

// submit sends an order to a node once, with the order's tag as the Idempotency-Key.
func (s *jobClient) submit(n *node, o *jobOrder) {
	prompt := o.tag + "."
	if o.unsafe {
		prompt += " " + unsafeJob
	}
	r, err := s.Try("POST", n.address()+scene.PathGenerate, scene.JobRequest(imageModel, prompt, nil), "Idempotency-Key", o.tag)
	if err != nil && r.Status < 400 {
		o.lostReplies++
		return
	}
	o.lastReply = r
	if r.Status == http.StatusAccepted {
		var j struct{ ID string }
		if err := json.Unmarshal(r.Raw, &j); err != nil || j.ID == "" {
			s.T.Errorf("%s: %v in %s", o.tag, err, r)
		}
		o.id = j.ID
	}
}

// errNotEnded means that the job of an order is still running.
var errNotEnded = errors.New("not ended")

// pollFinal polls the job of an order once. It returns errNotEnded if the job is still running.
func (s *jobClient) pollFinal(o *jobOrder) (scene.Job, error) {
	r, err := s.Try("GET", "/v1/images/jobs/"+o.id, nil)
	if err != nil {
		return scene.Job{}, err
	}
	if r.Status != http.StatusOK {
		return scene.Job{}, errors.New(r.String())
	}
	j := scene.ReadJob(s.T, r)
	if !j.Final() {
		return j, errNotEnded
	}
	return j, nil
}

// uncharged reports whether a message says that nothing was charged.
func uncharged(message string) bool { return strings.Contains(message, "not charged") }
