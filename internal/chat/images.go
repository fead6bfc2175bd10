package chat

import (
	"context"

	"tollgate/internal/fault"
)

// maxFetched is how many images of a request are fetched at most.
const maxFetched = 16

// image is what was fetched from an address, or why it was not.
type image struct {
	mime string
	data []byte
	err  error
}

// images returns how a translation gets the images that its line wants inline,
// each of them once however many lines are asked; nil: not at all.
func (x *exchange) images(ctx context.Context) func(address string) (string, []byte, error) {
	if x.Image == nil {
		return nil
	}
	return func(address string) (string, []byte, error) {
		got, known := x.fetched[address]
		switch {
		case known:
		case len(x.fetched) == maxFetched:
			return "", nil, fault.New(fault.InvalidRequest, "This model takes at most %d images by address. Send the others inline.", maxFetched)
		default:
			got.mime, got.data, got.err = x.Image(ctx, address)
			if x.fetched == nil {
				x.fetched = make(map[string]image)
			}
			x.fetched[address] = got
		}
		return got.mime, got.data, got.err
	}
}
