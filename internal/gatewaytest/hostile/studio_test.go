package hostile

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/gatewaytest/scene"
)

// studio is an image or video model with two lines at one provider.
type studio struct {
	fakestudio.Provider
	kind    string
	attacks []jobAttack
	fakes   []fakestudio.Fake

	mu     sync.Mutex
	played map[string]int // attempts by the marker in the prompt
}

// hosts returns the host names of the providers, except providers with results on the line's own
// host.
func hosts() map[string]string {
	return map[string]string{"fal": "queue.fal.run", "openai": "api.openai.com", "replicate": "api.replicate.com",
		"ark": "ark.ap-southeast.bytepluses.com", "dashscope": "dashscope-intl.aliyuncs.com",
		"xai": "api.x.ai", "stability": "api.stability.ai", "ideogram": "api.ideogram.ai",
		"recraft": "external.api.recraft.ai", "luma": "agents.lumalabs.ai", "minimax": "api.minimax.io",
		"kling": "api-singapore.klingai.com", "runway": "api.dev.runwayml.com", "azure": "our.openai.azure.com"}
}

// openStudios starts two fakes for each provider and kind.
func openStudios(t testing.TB) (all []*studio) {
	t.Helper()
	providers := append(fakestudio.All(),
		fakestudio.Provider{Name: "azure", Open: func(t testing.TB) fakestudio.Fake { return fakestudio.NewAzure(t) }, Image: "gpt-image-2",
			Video:       "sora-2",
			UnsafeImage: fakestudio.Refusal(400, `{"error":{"code":"moderation_blocked","message":"no"}}`),
			UnsafeVideo: fakestudio.Failure(`{"code":"moderation_blocked","message":"no"}`)})
	for _, p := range providers {
		for _, kind := range p.Kinds() {
			s := &studio{Provider: p, kind: kind, played: map[string]int{}}
			s.attacks = s.jobAttacks()
			for range 2 {
				f := p.Open(t)
				f.Always(s.behaviourOf)
				s.fakes = append(s.fakes, f)
			}
			all = append(all, s)
		}
	}
	return all
}

// id returns the id of the model.
func (s *studio) id() string { return s.Name + "-" + s.kind }

func (s *studio) model() map[string]any {
	switch {
	case s.kind != "video":
		return scene.ImageModel(s.id(), nil)
	case s.Seconds > 0:
		return scene.ClipModel(s.id(), cmp.Or(s.Tier, "720p"), s.Seconds)
	}
	return scene.VideoModel(s.id(), nil)
}

func (s *studio) lines() (lines []map[string]any) {
	for i, f := range s.fakes {
		line := s.JobLine(fmt.Sprintf("%s-%d", s.id(), i+1), f, s.kind, nil, s.id())
		if host := hosts()[s.Name]; host != "" {
			line["base_url"] = strings.Replace(f.URL(), "127.0.0.1", host, 1)
		}
		if s.Name == "azure" {
			line["forms"] = []string{"chat"}
		}
		lines = append(lines, line)
	}
	return lines
}

// attackWords matches the marker and numbers of an attack in a prompt.
var attackWords = regexp.MustCompile(`attack-([0-9]+)\. [0-9]+ [0-9]+`)

// behaviourOf returns the behaviour of a submission: the attack in its prompt, or success.
func (s *studio) behaviourOf(body []byte) fakestudio.Behaviour {
	words := attackWords.FindSubmatch(body)
	if words == nil {
		return fakestudio.Behaviour{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.played[string(words[0])]++; s.played[string(words[0])] > plays {
		return fakestudio.Behaviour{}
	}
	i, _ := strconv.Atoi(string(words[1]))
	return s.attacks[i].behaviour
}

func (s *studio) jobRequest(words string) []byte {
	if s.kind == "video" {
		return scene.JobRequest(s.id(), words, map[string]any{"duration": cmp.Or(s.Seconds, scene.ClipSeconds), "ratio": "16:9"})
	}
	return scene.JobRequest(s.id(), words, map[string]any{"size": "16:9"})
}

const (
	jobPace    = 300 * time.Millisecond // interval of the good account's jobs for a model
	jobReady   = 2 * time.Minute        // the longest time of a good job, on a busy machine
	attackTime = 1500 * time.Millisecond
	// A short run plays one of jobShare attacks at each studio, and every attack with all studios
	// together.
	jobShare = 6
	// plays is the number of attempts with the attack. Later attempts succeed, so that each job ends.
	plays = 3
)

// attackStudio plays attacks at a studio while the good account runs jobs, and then waits until both
// lines are in service. number selects the attacks of a short run.
func (r *run) attackStudio(s *studio, number, round int) {
	ctx, stop := context.WithCancel(r.t.Context())
	r.outages.begin(s.id()+"-1", s.id()+"-2")
	defer r.outages.end(s.id()+"-1", s.id()+"-2")
	var group sync.WaitGroup
	group.Go(func() { r.goodJobs(ctx, s) })
	for i, k := range s.attacks {
		if r.until.IsZero() && i%jobShare != number%jobShare {
			continue
		}
		var attackers sync.WaitGroup
		for n := range k.times {
			if id := r.submit(r.hostile, s, fmt.Sprintf("%s %d %d", marker(i), round, n)); id != "" {
				attackers.Go(func() { r.waitForEnd(r.hostile, s, id, attackTime) })
			}
		}
		attackers.Wait()
	}
	r.outages.waitUntilInService(s.id()+"-1", s.id()+"-2")
	stop()
	group.Wait()
}

// submit submits a job and returns its id, or the empty string if it is rejected.
func (r *run) submit(c *caller, s *studio, words string) (id string) {
	a := c.Call(r.t, "POST", scene.PathOf(s.kind), s.jobRequest(words))
	c.mu.Lock()
	c.jobs++
	c.mu.Unlock()
	if a.Status != http.StatusAccepted {
		c.recordError("%s: a submission was answered with %s", s.id(), a)
		return ""
	}
	return scene.ReadJob(r.t, a).ID
}

// goodJobs submits jobs until ctx ends, and follows each job to its end.
func (r *run) goodJobs(ctx context.Context, s *studio) {
	tick := time.NewTicker(jobPace)
	defer tick.Stop()
	var group sync.WaitGroup
	for n := 0; n == 0 || ctx.Err() == nil; n++ {
		if id := r.submit(r.good, s, fmt.Sprintf("a boat, %d", n)); id != "" {
			group.Go(func() { r.follow(s, id) })
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	group.Wait()
}

// follow polls a good job until its end.
func (r *run) follow(s *studio, id string) {
	begin := time.Now()
	j := r.waitForEnd(r.good, s, id, jobReady)
	took, trace := time.Since(begin), r.good.OperatorJob(r.t, id)
	r.good.mu.Lock()
	if j.Status == "succeeded" {
		r.good.answers++
		if took > r.good.slowest {
			r.good.slowest, r.good.trace = took, fmt.Sprintf("%s %s", s.id(), trace)
		}
	} else {
		r.good.errors++
	}
	r.good.mu.Unlock()
	if j.Status != "succeeded" {
		r.good.recordError("%s: after %s, job %s is %s; %s", s.id(), took, id, j.Raw, trace)
	}
}

// waitForEnd polls a job until it has ended, or until the duration within has passed.
func (r *run) waitForEnd(c *caller, s *studio, id string, within time.Duration) (j scene.Job) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !j.Final() && time.Since(begin) < within; <-tick.C {
		j = scene.ReadJob(r.t, c.Call(r.t, "GET", "/v1/"+s.kind+"s/jobs/"+id, nil))
	}
	return j
}
