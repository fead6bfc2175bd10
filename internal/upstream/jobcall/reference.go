package jobcall

import (
	"context"
	"errors"
	"io"
	"strings"

	"tollgate/internal/upstream"
)

// Reference is an image or a video to work from.
type Reference struct {
	// Type is its content type (`image/png`, `video/mp4`), checked.
	Type string
	// Size is its length in bytes.
	Size int64
	// URL is an address that anybody can read; empty where the media host is
	// not public: then it goes inline.
	URL string
	// Role is what it is for, one of jobrequest.Roles; empty: the line's choice.
	// In a task all references have one or none has.
	Role string
	// Open opens its bytes.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Image tells whether the reference is an image; else it is a video.
func (r Reference) Image() bool { return strings.HasPrefix(r.Type, "image/") }

// FitPictures checks the images among w's references against what a provider
// takes: the most bytes of one, and of all those together that must go inline,
// in base64. It reads none of them. The error is a *upstream.JobFailure.
func (w Task) FitPictures(most, inline int64) error {
	var together int64
	for i, r := range w.References {
		if !r.Image() {
			continue
		}
		if r.Size > most {
			return upstream.Unfit(w.Kind, "Reference %d has more than the %d MB that the provider takes of an image.", i+1, most>>20)
		}
		if r.URL == "" {
			together += (r.Size + 2) / 3 * 4
		}
	}
	if together > inline {
		return upstream.Unfit(w.Kind, "The references have more bytes together than the provider takes in one request.")
	}
	return nil
}

// Bytes reads the reference whole, for providers that want it inside the body.
// It reads Size bytes and fails if there are not so many.
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
