package chat

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
)

// Bounds of the fetched images of a request.
const (
	maxFetched    = 16
	fetchedAtOnce = 4
)

// images returns a function for translations to fetch images for inline use. It fetches each image
// once over all lines. It returns nil if images cannot be fetched.
func (x *chatRequest) images(ctx context.Context) func(addresses []string) []wire.FetchedImage {
	if x.Image == nil {
		return nil
	}
	return func(addresses []string) []wire.FetchedImage {
		if x.fetched == nil {
			x.fetched = make(map[string]wire.FetchedImage)
		}
		got := make([]wire.FetchedImage, len(addresses))
		var missing []int
		for i, address := range addresses {
			var known bool
			if got[i], known = x.fetched[address]; !known {
				missing = append(missing, i)
			}
		}
		if room := maxFetched - len(x.fetched); len(missing) > room {
			got[missing[room]].Err = fault.New(fault.InvalidRequest,
				"This model takes at most %d images by address. Send the others inline.", maxFetched)
			return got // the first error ends the translation
		}
		x.fetch(ctx, addresses, missing, got)
		for _, i := range missing {
			x.fetched[addresses[i]] = got[i]
		}
		return got
	}
}

// fetch fetches the addresses with the given indexes, up to fetchedAtOnce concurrently.
func (x *chatRequest) fetch(ctx context.Context, addresses []string, numbers []int, to []wire.FetchedImage) {
	var group sync.WaitGroup
	slots := make(chan struct{}, fetchedAtOnce)
	for _, i := range numbers {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			defer func() {
				if panicked := recover(); panicked != nil { // an untrusted file must not end the process
					to[i].Err = fault.Unavailable(fmt.Errorf("fetching an image panicked: %v\n%s", panicked, debug.Stack()))
				}
			}()
			to[i].MIME, to[i].Data, to[i].Err = x.Image(ctx, addresses[i])
		})
	}
	group.Wait()
}
