package clients

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// mediaJob is a job as a client reads it.
type mediaJob struct {
	ID, Object, Status, Model string
	Created                   int64
	Data                      []struct{ URL string }
	Usage                     struct {
		Images     int64
		Clips      int64
		Resolution string
	}
	Error *struct{ Code, Message string }
}

// startMedia runs the binary with the catalog of images and videos.
func startMedia(t *testing.T) *gateway {
	t.Helper()
	catalog, err := os.ReadFile("testdata/media.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, string(catalog))
}

// waitForJob polls a job until it has ended, more often than the documents advise.
func waitForJob(t *testing.T, client openai.Client, path string) mediaJob {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		var job mediaJob
		if err := client.Get(context.Background(), path, nil, &job); err != nil {
			t.Fatal(err)
		}
		switch job.Status {
		case "succeeded":
			return job
		case "queued", "processing":
		default:
			t.Fatalf("%s: %+v %+v", path, job, job.Error)
		}
		select {
		case <-limit:
			t.Fatalf("%s is still %s", path, job.Status)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// download gets a result from its link.
func download(t *testing.T, url string) (contentType string, body []byte) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, answer.Status, err)
	}
	return answer.Header.Get("Content-Type"), body
}

// hatPicture returns a small PNG.
func hatPicture(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 64, 64))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// checkPictures checks that the links of a job lead to count pictures.
func checkPictures(t *testing.T, job mediaJob, count int) {
	t.Helper()
	if job.Object != "image.generation.job" || job.Model != "easel-1" || len(job.Data) != count || job.Usage.Images != int64(count) ||
		job.Created == 0 {
		t.Fatalf("%+v", job)
	}
	for _, result := range job.Data {
		contentType, body := download(t, result.URL)
		if !strings.HasPrefix(contentType, "image/") {
			t.Errorf("%s is %s", result.URL, contentType)
		}
		if _, _, err := image.DecodeConfig(bytes.NewReader(body)); err != nil {
			t.Errorf("%s: %v", result.URL, err)
		}
	}
}

// TestGoClientWaitsForPictures checks that the methods for images return the images with a key that
// waits.
func TestGoClientWaitsForPictures(t *testing.T) {
	g := startMedia(t)
	key := g.key(t, g.account(t, "10"), map[string]any{"wait_for_pictures": true})
	client := openai.NewClient(option.WithBaseURL(g.url+"/v1/"), option.WithAPIKey(key), option.WithMaxRetries(0))
	generated, err := client.Images.Generate(context.Background(), openai.ImageGenerateParams{Model: "easel-1", Prompt: "a red hat"})
	if err != nil {
		t.Fatal(err)
	}
	edited, err := client.Images.Edit(context.Background(), openai.ImageEditParams{Model: "easel-1", Prompt: "make it blue",
		Image: openai.ImageEditParamsImageUnion{OfFile: openai.File(bytes.NewReader(hatPicture(t)), "hat.png", "image/png")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range []*openai.ImagesResponse{generated, edited} {
		if len(answer.Data) != 1 || answer.Created == 0 {
			t.Fatalf("%s, want one picture", answer.RawJSON())
		}
		_, body := download(t, answer.Data[0].URL)
		if inline, err := base64.StdEncoding.DecodeString(answer.Data[0].B64JSON); err != nil || !bytes.Equal(inline, body) {
			t.Errorf("the base64 has %d bytes with error %v, the link %d, want the same", len(inline), err, len(body))
		}
	}
}

// jobID returns the id of the job in an answer of the images methods.
func jobID(t *testing.T, answer *openai.ImagesResponse) string {
	t.Helper()
	var job mediaJob
	if err := json.Unmarshal([]byte(answer.RawJSON()), &job); err != nil || job.ID == "" || job.Status != "queued" || len(answer.Data) != 0 {
		t.Fatalf("%v: %s", err, answer.RawJSON())
	}
	var id string
	if err := json.Unmarshal([]byte(answer.JSON.ExtraFields["id"].Raw()), &id); err != nil || id != job.ID {
		t.Errorf("the extra field id is %q, %v", id, err)
	}
	return job.ID
}

// TestMediaForGo tests jobs with the official Go client.
func TestMediaForGo(t *testing.T) {
	g := startMedia(t)
	account := g.account(t, "10")
	client := g.client(g.key(t, account, nil))
	ctx := context.Background()

	t.Run("generates images", func(t *testing.T) {
		var res *http.Response
		answer, err := client.Images.Generate(ctx, openai.ImageGenerateParams{
			Model: "easel-1", Prompt: "a red hat", N: openai.Int(2), Size: openai.ImageGenerateParamsSize1024x1024,
			Quality: openai.ImageGenerateParamsQualityHigh,
		}, option.WithResponseInto(&res))
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusAccepted {
			t.Errorf("status %s", res.Status)
		}
		checkRequestIDs(t, res)
		checkPictures(t, waitForJob(t, client, "images/jobs/"+jobID(t, answer)), 2)
		if usage := g.usage(t, client); nano(t, usage.Total.CostUSD) != 60_000_000 {
			t.Errorf("charged %s USD", usage.Total.CostUSD)
		}
	})

	t.Run("edits an image", func(t *testing.T) {
		answer, err := client.Images.Edit(ctx, openai.ImageEditParams{
			Model: "easel-1", Prompt: "make it blue", Size: openai.ImageEditParamsSize1536x1024, N: openai.Int(1),
			Image: openai.ImageEditParamsImageUnion{OfFile: openai.File(bytes.NewReader(hatPicture(t)), "hat.png", "image/png")},
			Mask:  openai.File(bytes.NewReader(hatPicture(t)), "mask.png", "image/png"),
		})
		if err != nil {
			t.Fatal(err)
		}
		checkPictures(t, waitForJob(t, client, "images/jobs/"+jobID(t, answer)), 1)
	})

	t.Run("edits several", func(t *testing.T) {
		files := []io.Reader{
			openai.File(bytes.NewReader(hatPicture(t)), "a.png", "image/png"), openai.File(bytes.NewReader(hatPicture(t)), "b.png", "image/png"),
		}
		answer, err := client.Images.Edit(ctx, openai.ImageEditParams{Model: "easel-1", Prompt: "put one on the other",
			Image: openai.ImageEditParamsImageUnion{OfFileArray: files}})
		if err != nil {
			t.Fatal(err)
		}
		checkPictures(t, waitForJob(t, client, "images/jobs/"+jobID(t, answer)), 1)
	})

	t.Run("makes a video", func(t *testing.T) {
		var job mediaJob
		body := map[string]any{"model": "reel-1", "prompt": "the hat falls", "duration": 2}
		if err := client.Post(ctx, "videos/generations", body, &job); err != nil {
			t.Fatal(err)
		}
		job = waitForJob(t, client, "videos/jobs/"+job.ID)
		if job.Object != "video.generation.job" || len(job.Data) != 1 || job.Usage.Clips != 1 {
			t.Fatalf("%+v", job)
		}
		if contentType, clip := download(t, job.Data[0].URL); contentType != "video/mp4" || len(clip) == 0 {
			t.Errorf("%s of %d bytes", contentType, len(clip))
		}
		err := client.Get(ctx, "images/jobs/"+job.ID, nil, &job)
		mediaFault(t, err, http.StatusNotFound, "job_not_found", "")
	})

	t.Run("repeats with an Idempotency-Key", func(t *testing.T) {
		edit := func() string {
			t.Helper()
			answer, err := client.Images.Edit(ctx, openai.ImageEditParams{Model: "easel-1", Prompt: "make it green",
				Image: openai.ImageEditParamsImageUnion{OfFile: openai.File(bytes.NewReader(hatPicture(t)), "hat.png", "image/png")},
			}, option.WithHeader("Idempotency-Key", "green-hat"))
			if err != nil {
				t.Fatal(err)
			}
			return jobID(t, answer)
		}
		first := edit()
		if again := edit(); again != first {
			t.Errorf("jobs %s and %s", first, again)
		}
		waitForJob(t, client, "images/jobs/"+first)
	})

	t.Run("gets the reason of an error", func(t *testing.T) {
		_, err := client.Images.Generate(ctx, openai.ImageGenerateParams{Model: "easel-1", Prompt: "a hat", N: openai.Int(5)})
		mediaFault(t, err, http.StatusBadRequest, "invalid_request", "n")
		_, err = client.Images.Generate(ctx, openai.ImageGenerateParams{Model: "easel-1", Prompt: ""})
		mediaFault(t, err, http.StatusBadRequest, "missing_prompt", "prompt")
		_, err = client.Images.Generate(ctx, openai.ImageGenerateParams{Model: "swift-1", Prompt: "a hat"})
		mediaFault(t, err, http.StatusBadRequest, "model_not_found", "model")
		_, err = client.Images.Edit(ctx, openai.ImageEditParams{Model: "easel-1", Prompt: "a hat",
			Image: openai.ImageEditParamsImageUnion{OfFile: openai.File(strings.NewReader("no picture"), "hat.png", "image/png")}})
		mediaFault(t, err, http.StatusBadRequest, "invalid_request", "image")
	})
}

// mediaFault checks the error of a client.
func mediaFault(t *testing.T, err error, status int, code, param string) {
	t.Helper()
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != status || e.Code != code || e.Param != param || e.Message == "" {
		t.Errorf("got %v; want %d %s about %q", err, status, code, param)
	}
}
