package jobcall

import (
	"context"
	"errors"
	"io"
	"strings"

	"tollgate/internal/upstream"
)

// Reference is a reference image or video.
type Reference struct {
	// Type is the verified content type (`image/png`, `video/mp4`).
	Type string
	// Size is the length in bytes.
	Size int64
	// URL is a publicly readable address. It is empty if the media host is not public; the
	// reference is then sent inline.
	URL string
	// Role is the reference's purpose, one of jobrequest.Roles. If empty, the line chooses. Either
	// all references of a task have a role, or no reference has a role.
	Role string
	// Open opens the bytes of the reference.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Image reports whether the reference is an image. All others are videos.
func (r Reference) Image() bool { return strings.HasPrefix(r.Type, "image/") }

// CheckPictureSizes returns an error if one of the task's reference images has more than maxImage bytes,
// or if all images sent inline have more than maxInline bytes in base64. It does not read the images.
// The error is a *upstream.JobFailure.
func (task Task) CheckPictureSizes(maxImage, maxInline int64) error {
	var inlineTotal int64
	for i, r := range task.References {
		if !r.Image() {
			continue
		}
		if r.Size > maxImage {
			return upstream.Unfit(task.Kind, "Reference %d has more than the %d MB that the provider takes of an image.", i+1, maxImage>>20)
		}
		if r.URL == "" {
			inlineTotal += (r.Size + 2) / 3 * 4
		}
	}
	if inlineTotal > maxInline {
		return upstream.Unfit(task.Kind, "The references have more bytes together than the provider takes in one request.")
	}
	return nil
}

// Bytes reads the whole reference, for providers with references in the request body. It returns an
// error if the reference has fewer than Size bytes.
func (r Reference) Bytes(ctx context.Context) ([]byte, error) {
	from, err := r.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if r.Size < 0 {
		return nil, errors.New("its size is not known")
	}
	data := make([]byte, r.Size)
	if _, err := io.ReadFull(from, data); err != nil {
		return nil, err
	}
	return data, nil
}
