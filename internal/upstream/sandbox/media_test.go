package sandbox

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

func TestPictureSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task jobcall.Task
		want image.Point
	}{
		{jobcall.Task{Width: 1344, Height: 768}, image.Pt(1344, 768)},
		{jobcall.Task{Width: 333, Height: 251}, image.Pt(333, 251)},
		{jobcall.Task{Width: 1, Height: 1}, image.Pt(1, 1)},
		{jobcall.Task{Width: 1, Height: 5000}, image.Pt(1, 5000)},
		{jobcall.Task{Width: 3072, Height: 2048}, image.Pt(3072, 2048)},
		{jobcall.Task{Width: 8192, Height: 4096}, image.Pt(3547, 1773)},
		{jobcall.Task{Width: 32768, Height: 16}, image.Pt(8192, 4)},
		{jobcall.Task{Tier: "1K"}, image.Pt(1024, 1024)},
		{jobcall.Task{Tier: "512p"}, image.Pt(512, 512)},
		{jobcall.Task{}, image.Pt(1024, 1024)},
	} {
		c.task.Kind = upstream.KindImage
		data, err := picture(c.task, 0)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil || img.Bounds() != (image.Rectangle{Max: c.want}) {
			t.Errorf("%dx%d %s: %v, %v, want %v", c.task.Width, c.task.Height, c.task.Tier, img.Bounds(), err, c.want)
		}
	}
}

// TestPicturesDiffer tests that the four images of a task differ, and that another submission of the
// same task gets the same images.
func TestPicturesDiffer(t *testing.T) {
	t.Parallel()
	task := jobcall.Task{Kind: upstream.KindImage, Prompt: "A lighthouse", Width: 200, Height: 100}
	seen := map[string]int{}
	for index := range 4 {
		data, err := picture(task, index)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[string(data)]; ok {
			t.Errorf("images %d and %d are the same", other, index)
		}
		seen[string(data)] = index
		again := task
		again.Key = "another submission"
		if same, err := picture(again, index); err != nil || !bytes.Equal(same, data) {
			t.Errorf("image %d differs in the second submission, %v", index, err)
		}
	}
}

// TestPictureIsCropped tests that a picture of another ratio keeps its proportions.
func TestPictureIsCropped(t *testing.T) {
	t.Parallel()
	src := image.NewPaletted(image.Rect(0, 0, 4, 4), nil)
	for i := range src.Pix {
		src.Pix[i] = uint8(i)
	}
	if got := cover(src, 4, 2).Pix; !bytes.Equal(got, []byte{4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("wide: %v", got)
	}
	if got := cover(src, 1, 2).Pix; !bytes.Equal(got, []byte{6, 14}) {
		t.Errorf("tall: %v", got)
	}
}

// TestClips decodes a clip of each size with ffmpeg.
func TestClips(t *testing.T) {
	t.Parallel()
	if os.Getenv("TOLLGATE_TEST_FFMPEG") == "absent" {
		t.Log("ffmpeg is not installed: the sandbox's clips were NOT decoded")
		return
	}
	for _, c := range []struct {
		tier          string
		width, height int
		seconds       int64
		want          string
	}{
		{"720p", 1280, 720, 5, "1280x720"},
		{"720p", 720, 1280, 10, "720x1280"},
		{"720p", 720, 720, 1, "720x720"},
		{"1080p", 1920, 1080, 7, "1920x1080"},
		{"1080p", 1080, 1920, 120, "1080x1920"},
		{"1080p", 1080, 1080, 3, "1080x1080"},
	} {
		data, err := clip(jobcall.Task{Kind: upstream.KindVideo, Tier: c.tier, Width: c.width, Height: c.height, Seconds: c.seconds})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "clip.mp4")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := exec.Command("ffprobe", "-v", "error", "-count_frames", "-of", "default=nokey=1:noprint_wrappers=1",
			"-show_entries", "stream=codec_name,width,height,pix_fmt,nb_read_frames:format=duration", file).CombinedOutput()
		if err != nil {
			t.Fatalf("ffprobe (apt-get install ffmpeg): %v\n%s", err, output)
		}
		got := strings.Fields(string(output))
		if len(got) != 6 || got[0] != "h264" || got[1]+"x"+got[2] != c.want || got[3] != "yuv420p" || got[4] != "100" {
			t.Errorf("%s: %q", c.want, got)
		}
		var seconds float64
		if _, err := fmt.Sscan(got[len(got)-1], &seconds); err != nil || math.Abs(seconds-float64(c.seconds)) > 0.003 {
			t.Errorf("%s: %v seconds, %v, want %d", c.want, seconds, err, c.seconds)
		}
		output, err = exec.Command("ffmpeg", "-v", "error", "-xerror", "-i", file, "-f", "null", "-").CombinedOutput()
		if err != nil || len(output) > 0 {
			t.Errorf("%s: %v\n%s", c.want, err, output)
		}
	}
}

// TestClipSize tests the choice of a clip for tasks with a size that no clip has.
func TestClipSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		task jobcall.Task
		want string
	}{
		{jobcall.Task{}, "1280x720"},
		{jobcall.Task{Tier: "720p"}, "1280x720"},
		{jobcall.Task{Tier: "1080p"}, "1920x1080"},
		{jobcall.Task{Tier: "480p", Width: 640, Height: 480}, "720x720"},
		{jobcall.Task{Tier: "480p", Width: 854, Height: 480}, "1280x720"},
		{jobcall.Task{Tier: "480p", Width: 480, Height: 854}, "720x1280"},
		{jobcall.Task{Tier: "4K", Width: 3840, Height: 2160}, "1920x1080"},
		{jobcall.Task{Width: 2000, Height: 20}, "1280x720"},
		{jobcall.Task{Width: 20, Height: 2000}, "720x1280"},
	} {
		if got := clipSize(c.task); got != c.want {
			t.Errorf("%s %dx%d: %s, want %s", cmp.Or(c.task.Tier, "no tier"), c.task.Width, c.task.Height, got, c.want)
		}
	}
}

// TestAssetsAreSmall limits the size of the embedded media.
func TestAssetsAreSmall(t *testing.T) {
	t.Parallel()
	entries, err := assets.ReadDir("media")
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size == 0 || size > 200_000 {
		t.Errorf("%d bytes", size)
	}
}
