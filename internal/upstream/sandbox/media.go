package sandbox

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"math"

	"tollgate/internal/upstream/jobcall"
)

// assets holds the sandbox's pictures and clips. media/make.sh makes them.
//
//go:embed media/*.png media/*.mp4
var assets embed.FS

// Limits of a picture. A larger picture is scaled down and keeps its ratio.
const (
	maxPicturePixels = 2048 * 2048 * 3 / 2
	maxPictureSide   = 8192
)

const (
	defaultSeconds = 5
	maxSeconds     = 120

	// clipTicks is the duration of every embedded clip in the ticks of its headers.
	clipTicks = 3_603_600
)

// picture returns the image with the given index as a PNG of the task's size.
// The prompt, the params and the model select the drawing, so equal tasks have
// equal images, and neighbouring images of a task differ.
func picture(task jobcall.Task, index int) ([]byte, error) {
	names := [...]string{"hills", "night", "sea", "shapes"}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %q", task.Prompt, task.Params, task.Model))
	file, err := assets.Open("media/" + names[(int(sum[0])+index)%len(names)] + ".png")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	img, err := png.Decode(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	width, height := pictureSize(task)
	if err := encoder.Encode(&out, cover(img.(*image.Paletted), width, height)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// pictureSize returns the size of a task's images in pixels.
func pictureSize(task jobcall.Task) (width, height int) {
	width, height = task.Width, task.Height
	if width <= 0 || height <= 0 {
		side, ok := jobcall.TierSide(task.Tier)
		if !ok {
			side = 1024
		}
		width, height = side, side
	}
	scale := min(1, maxPictureSide/float64(max(width, height)), math.Sqrt(maxPicturePixels/(float64(width)*float64(height))))
	return max(int(float64(width)*scale), 1), max(int(float64(height)*scale), 1)
}

// cover scales the middle of src, cropped to the ratio of the result, to a size.
func cover(src *image.Paletted, width, height int) *image.Paletted {
	out := image.NewPaletted(image.Rect(0, 0, width, height), src.Palette)
	scale := min(float64(src.Rect.Dx())/float64(width), float64(src.Rect.Dy())/float64(height))
	left := (float64(src.Rect.Dx()) - scale*float64(width)) / 2
	top := (float64(src.Rect.Dy()) - scale*float64(height)) / 2
	columns := make([]int, width)
	for x := range columns {
		columns[x] = int(left + scale*(float64(x)+0.5))
	}
	for y := range height {
		from := src.Pix[int(top+scale*(float64(y)+0.5))*src.Stride:]
		to := out.Pix[y*out.Stride:][:width]
		for x, column := range columns {
			to[x] = from[column]
		}
	}
	return out
}

// clip returns an MP4 of the task's duration. Of the embedded clips it takes the
// one whose ratio is nearest to the task's, in 1080p if the task asks for 1080
// lines or more and in 720p otherwise.
func clip(task jobcall.Task) ([]byte, error) {
	data, err := assets.ReadFile("media/" + clipSize(task) + ".mp4")
	if err != nil {
		return nil, err
	}
	seconds := task.Seconds
	if seconds <= 0 {
		seconds = defaultSeconds
	}
	// Slower ticks make the clip longer. The rounding is below 3 ms in two minutes.
	ticks := uint32(math.Round(clipTicks / float64(seconds)))
	for _, header := range []string{"mvhd", "mdhd"} {
		// After its name, a header has a version and two times of 4 bytes each.
		at := bytes.Index(data, []byte(header))
		binary.BigEndian.PutUint32(data[at+16:], ticks)
	}
	return data, nil
}

// clipSize returns the size of the embedded clip for a task.
func clipSize(task jobcall.Task) string {
	width, height := task.Width, task.Height
	if width <= 0 || height <= 0 {
		side, _ := jobcall.TierSide(task.Tier)
		width, height = side*16/9, side
	}
	const middle = 4.0 / 3 // halfway between 1:1 and 16:9
	ratio := float64(width) / float64(max(height, 1))
	sizes := [2]string{"720x720", "1080x1080"}
	switch {
	case ratio > middle || height == 0:
		sizes = [2]string{"1280x720", "1920x1080"}
	case ratio < 1/middle:
		sizes = [2]string{"720x1280", "1080x1920"}
	}
	if min(width, height) >= 1080 {
		return sizes[1]
	}
	return sizes[0]
}
