package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

func TestFailRate(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]int{0: 0, 0.1: 10, 0.25: 25, 0.5: 50, 1: 100} {
		a := open(t, map[string]any{"fail": "unavailable", "fail_rate": rate})
		failed := 0
		for range 100 {
			if _, err := chat(t.Context(), a, false, hello); err != nil {
				failed++
			}
		}
		if failed != want {
			t.Errorf("rate %g: %d of 100 failed", rate, failed)
		}
	}
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	token := map[wire.Form]string{wire.FormChat: `"delta":{"content":`, wire.FormResponses: `"delta":"`, wire.FormMessages: `"delta":{`}
	for _, f := range forms {
		for after := range 4 {
			for _, stream := range []bool{false, true} {
				answer, err := call(t.Context(), open(t, map[string]any{"break_after": after}), f.form, stream, f.hello)
				if err != nil {
					t.Fatal(err)
				}
				out, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if !errors.Is(err, io.ErrUnexpectedEOF) || len(out) == 0 {
					t.Errorf("%s, after %d: %v", f.form, after, err)
				}
				if got := strings.Count(string(out), token[f.form]); stream && got != after {
					t.Errorf("%s: %d tokens came, want %d: %s", f.form, got, after, out)
				}
				for _, end := range []string{"[DONE]", "message_stop", "response.completed"} {
					if strings.Contains(string(out), end) {
						t.Errorf("%s: a broken stream looks whole", f.form)
					}
				}
			}
		}
	}
}

func TestErrorInside(t *testing.T) {
	t.Parallel()
	begin := map[wire.Form]string{
		wire.FormChat: `data: {"error":{`, wire.FormResponses: "event: response.failed\n", wire.FormMessages: "event: error\n",
	}
	for _, asked := range forms {
		form := asked.form
		plain := readForm(t, form, map[string]any{"fail": "error_inside"}, false, asked.hello)
		if f := upstream.Classify(200, "application/json", []byte(plain), nil); f == nil || f.Code != fault.UpstreamUnavailable {
			t.Errorf("%s: %s: %v", form, plain, f)
		}
		for after, options := range map[int]map[string]any{0: {"fail": "error_inside"}, 2: {"fail": "error_inside", "break_after": 2}} {
			stream := readForm(t, form, options, true, asked.hello)
			events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
			last := events[len(events)-1]
			if !strings.HasPrefix(last, begin[form]) || (len(events) > 1) != (after > 0) {
				t.Errorf("%s: %s", form, stream)
			}
			_, data, _ := strings.Cut(last, "data: ")
			if inner := gjson.Get(data, "response"); inner.Exists() {
				data = inner.Raw
			}
			if f := upstream.Classify(200, "application/json", []byte(data), nil); f == nil || f.Code != fault.UpstreamUnavailable {
				t.Errorf("%s: %s: %v", form, data, f)
			}
		}
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		for name, tt := range map[string]struct {
			options map[string]any
			want    time.Duration
		}{
			"tokens":          {map[string]any{"delay": "2s", "chunk_delay": "100ms", "tokens": 11}, 3 * time.Second},
			"nothing to say":  {map[string]any{"delay": "2s", "chunk_delay": "100ms", "fail": "empty"}, 2 * time.Second},
			"hidden thoughts": {map[string]any{"delay": "2s", "chunk_delay": "100ms", "fail": "thinking_only"}, 2900 * time.Millisecond},
		} {
			for _, stream := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					answer, err := call(t.Context(), open(t, tt.options), f.form, stream, f.hello)
					if err != nil {
						t.Fatal(err)
					}
					if stream && time.Since(start) != 0 {
						t.Error("the head of a stream waits for its first token")
					}
					if _, err := io.ReadAll(answer.Body); err != nil {
						t.Fatal(err)
					}
					answer.Body.Close()
					// A plain answer waits for its last token too, which makes one more pause.
					if took := time.Since(start); took < tt.want || took > tt.want+100*time.Millisecond {
						t.Errorf("%s, %s, stream %t: took %s", f.form, name, stream, took)
					}
				})
			}
		}
	}
}

// TestWaitsEnd checks that every wait of the sandbox ends when the caller's context ends.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	ways := map[string]map[string]any{
		"delay":       {"delay": "1h"},
		"chunk delay": {"chunk_delay": "1h"},
		"timeout":     {"fail": "timeout"},
		"stall":       {"stall_after": 1},
		"stall first": {"stall_after": 0},
	}
	for name, options := range ways {
		for _, f := range forms {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stream %t", name, f.form, stream), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						answer, err := call(ctx, open(t, options), f.form, stream, f.hello)
						if err == nil {
							_, err = io.ReadAll(answer.Body)
							answer.Body.Close()
						}
						if f := upstream.ConnectionFailure(ctx, err); f.Code != fault.UpstreamTimeout {
							t.Errorf("deadline: %v", f)
						}
					})
				})
			}
		}
	}
}

// TestCloseEndsARead checks that Close ends a Read that waits for more data.
func TestCloseEndsARead(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		for _, stream := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				answer, err := call(t.Context(), open(t, map[string]any{"stall_after": 1}), f.form, stream, f.hello)
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					_, err := io.ReadAll(answer.Body)
					done <- err
				}()
				synctest.Wait() // the reader waits for more
				answer.Body.Close()
				answer.Body.Close()
				if err := <-done; err == nil {
					t.Error("a closed body ended like a whole one")
				}
			})
		}
	}
}
