package media

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a backend in an S3-compatible store. It stores a file of one part with one PUT, and a
// longer file with a multipart upload, aborted on any error. So the file is visible completely or not
// at all.
type bucket struct {
	name      string
	api       *minio.Core
	transport *http.Transport
	keys      *bucketKeys // nil if the keys are in environment variables
}

// defaultRegion is the region if none is configured.
const defaultRegion = "us-east-1"

// Limits of the requests to a store.
const (
	partSize      = 8 << 20 // memory of one put; S3 requires at least 5 MiB
	maxParts      = 10_000  // limit of S3
	partTimeout   = 2 * time.Minute
	headerTimeout = time.Minute // until the header of a response
	abortTimeout  = 15 * time.Second
	maxAttempts   = 3
)

// openBucket opens the bucket at s3://BUCKET?endpoint=…&region=…&path_style=true. Credentials come
// from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else from the rest of
// AWS's chain (see bucketKeys). The region may come from AWS_REGION, AWS_DEFAULT_REGION or the
// profile.
func openBucket(ctx context.Context, location string, lookup func(string) (string, bool)) (*bucket, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, errors.New("media must be s3://BUCKET?endpoint=…&region=…&path_style=true")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("media: the options after the question mark are invalid")
	}
	for key := range query {
		if !slices.Contains([]string{"endpoint", "region", "path_style"}, key) {
			return nil, fmt.Errorf("media: option %s is not known; use endpoint, region or path_style", key)
		}
	}
	variable := func(name string) string { value, _ := lookup(name); return value }
	id, secret := variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
	region := cmp.Or(query.Get("region"), variable("AWS_REGION"), variable("AWS_DEFAULT_REGION"))
	creds := credentials.NewStaticV4(id, secret, variable("AWS_SESSION_TOKEN"))
	var keys *bucketKeys
	if id == "" || secret == "" {
		chain, err := loadChain(ctx)
		if err != nil {
			return nil, err
		}
		region = cmp.Or(region, chain.Region)
		keys = &bucketKeys{now: time.Now, chain: chain.Credentials}
		creds = credentials.New(keys)
	}
	region = cmp.Or(region, defaultRegion)
	endpoint, secure, err := endpointOf(cmp.Or(query.Get("endpoint"), "https://s3."+region+".amazonaws.com"))
	if err != nil {
		return nil, err
	}
	transport := storeTransport()
	options := &minio.Options{
		Creds:      creds,
		Secure:     secure,
		Region:     region, // set, so that the client does not query the region
		Transport:  transport,
		MaxRetries: maxAttempts,
	}
	switch query.Get("path_style") {
	case "true":
		options.BucketLookup = minio.BucketLookupPath
	case "false":
		options.BucketLookup = minio.BucketLookupDNS
	case "":
		options.BucketLookup = minio.BucketLookupAuto
	default:
		return nil, errors.New("media: path_style must be true or false")
	}
	api, err := minio.NewCore(endpoint, options)
	if err != nil {
		return nil, fmt.Errorf("media: %w", err)
	}
	if keys != nil {
		searchCtx, cancel := context.WithTimeout(ctx, keysTimeout)
		defer cancel()
		if _, err := keys.get(searchCtx); err != nil {
			return nil, missingKeysError(err, lookup)
		}
	}
	return &bucket{name: u.Host, api: api, transport: transport, keys: keys}, nil
}

// endpointOf returns the host of an endpoint and whether it uses TLS.
func endpointOf(address string) (host string, secure bool, err error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || (u.Scheme != "https" && u.Scheme != "http") {
		return "", false, errors.New("media: endpoint must be the address of a host, such as https://s3.example.com")
	}
	return u.Host, u.Scheme == "https", nil
}

// storeTransport returns the transport for the store. Contexts limit the time of transfers.
func storeTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ResponseHeaderTimeout: headerTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       time.Minute,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   64,
		DisableCompression:    true,
	}
}

// key returns the object key of a file in the bucket.
func (b *bucket) key(name string) string { return shard(name) + "/" + name }

func (b *bucket) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, headerTimeout)
	defer cancel()
	return checkBackend(ctx, b, "the media bucket "+b.name)
}

// IsStarting reports whether err is the response of a store before it is ready, a 5xx or a 429.
// Rejected credentials and a missing bucket are permanent errors.
func IsStarting(err error) bool {
	var response minio.ErrorResponse
	return errors.As(err, &response) && (response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests)
}

func (b *bucket) put(ctx context.Context, name, contentType string, r io.Reader) error {
	options := putOptions(contentType)
	var part bytes.Buffer
	last, err := nextPart(&part, r)
	if err != nil {
		return err
	}
	if last {
		return b.withTimeout(ctx, partTimeout, func(ctx context.Context) error {
			_, err := b.api.PutObject(ctx, b.name, b.key(name), bytes.NewReader(part.Bytes()), int64(part.Len()), "", "", options)
			return err
		})
	}
	// A dead node's interrupted upload would otherwise stay, and cost money, as long as the file.
	if err := b.api.RemoveIncompleteUpload(ctx, b.name, b.key(name)); err != nil {
		return err
	}
	upload, err := b.api.NewMultipartUpload(ctx, b.name, b.key(name), options)
	if err != nil {
		return err
	}
	if err := b.putParts(ctx, name, upload, &part, r); err != nil {
		abort := b.withTimeout(context.WithoutCancel(ctx), abortTimeout, func(ctx context.Context) error {
			return b.api.AbortMultipartUpload(ctx, b.name, b.key(name), upload)
		})
		if minio.ToErrorResponse(abort).Code == "NoSuchUpload" {
			abort = nil // the upload was completed and its response lost, or another node aborted it
		}
		return errors.Join(err, abort)
	}
	return nil
}

// putOptions returns the options for every file: the content type, for people who read the bucket,
// and a checksum for the store to verify.
func putOptions(contentType string) minio.PutObjectOptions {
	return minio.PutObjectOptions{ContentType: contentType, SendContentMd5: true}
}

// putParts uploads part and all following parts, and completes the upload.
func (b *bucket) putParts(ctx context.Context, name, upload string, part *bytes.Buffer, r io.Reader) error {
	var parts []minio.CompletePart
	for last := false; ; {
		if len(parts) == maxParts {
			return fmt.Errorf("%w: a bucket takes %d parts", ErrTooLarge, maxParts)
		}
		err := b.withTimeout(ctx, partTimeout, func(ctx context.Context) error {
			uploaded, err := b.api.PutObjectPart(ctx, b.name, b.key(name), upload, len(parts)+1,
				bytes.NewReader(part.Bytes()), int64(part.Len()), minio.PutObjectPartOptions{})
			parts = append(parts, minio.CompletePart{PartNumber: len(parts) + 1, ETag: uploaded.ETag})
			return err
		})
		if err != nil {
			return err
		}
		if last {
			break
		}
		if last, err = nextPart(part, r); err != nil {
			return err
		}
		if part.Len() == 0 {
			break
		}
	}
	return b.withTimeout(ctx, partTimeout, func(ctx context.Context) error {
		_, err := b.api.CompleteMultipartUpload(ctx, b.name, b.key(name), upload, parts, minio.PutObjectOptions{})
		return err
	})
}

// nextPart reads up to partSize bytes of r. last reports whether r has ended.
func nextPart(part *bytes.Buffer, r io.Reader) (last bool, err error) {
	part.Reset()
	n, err := io.CopyN(part, r, partSize)
	if errors.Is(err, io.EOF) && n < partSize {
		return true, nil
	}
	return false, err
}

// withTimeout runs one request with a timeout.
func (b *bucket) withTimeout(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

func (b *bucket) remove(ctx context.Context, name string) error {
	if err := b.api.RemoveObject(ctx, b.name, b.key(name), minio.RemoveObjectOptions{}); err != nil {
		return err
	}
	return b.api.RemoveIncompleteUpload(ctx, b.name, b.key(name))
}

// tidy is a no-op, because interrupted uploads belong to names with rows and are deleted with the
// names.
func (b *bucket) tidy(context.Context, time.Time) error { return nil }

func (b *bucket) close() { b.transport.CloseIdleConnections() }

// open requests the expected span at once, so that errors are known before the response begins. For
// an empty span it requests nothing.
func (b *bucket) open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error) {
	o := &object{ctx: ctx, bucket: b, name: name, size: size, expected: expected}
	if expected.from < expected.to {
		o.offset = expected.from
		if err := o.openBody(); err != nil {
			return nil, err
		}
		o.offset = 0
	}
	return o, nil
}

// object reads a file of a bucket. After a Seek, the next Read sends a new request.
type object struct {
	ctx      context.Context
	bucket   *bucket
	name     string
	size     int64
	expected span // the bytes to read in one request, if the first Read begins there

	offset     int64         // offset of the next Read
	body       io.ReadCloser // the response being read, or nil
	bodyOffset int64         // offset of the next byte of body
}

// openBody requests the bytes from offset on.
func (o *object) openBody() error {
	to := o.size
	if o.offset == o.expected.from {
		to = min(to, o.expected.to)
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(o.offset, to-1); err != nil {
		return err
	}
	body, info, _, err := o.bucket.api.GetObject(o.ctx, o.bucket.name, o.bucket.key(o.name), options)
	switch {
	case err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return err
	case info.Size != to-o.offset:
		return errors.Join(fmt.Errorf("the bucket sends %d bytes instead of %d", info.Size, to-o.offset), body.Close())
	}
	o.body, o.bodyOffset = body, o.offset
	return nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	for {
		if o.offset >= o.size {
			return 0, io.EOF
		}
		if o.body != nil && o.bodyOffset != o.offset {
			if err := o.closeBody(); err != nil {
				return 0, err
			}
		}
		if o.body == nil {
			if err := o.openBody(); err != nil {
				return 0, err
			}
		}
		n, err := o.body.Read(p)
		o.offset += int64(n)
		o.bodyOffset = o.offset
		if errors.Is(err, io.EOF) {
			if err = o.closeBody(); n == 0 && err == nil {
				continue // the expected range has ended, but the file has not
			}
		}
		return n, err
	}
}

// Seek implements io.Seeker.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.offset
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek to before the beginning")
	}
	o.offset = offset
	return offset, nil
}

// closeBody closes the response being read.
func (o *object) closeBody() error {
	body := o.body
	o.body = nil
	return body.Close()
}

// Close implements io.Closer.
func (o *object) Close() error {
	if o.body == nil {
		return nil
	}
	return o.closeBody()
}
