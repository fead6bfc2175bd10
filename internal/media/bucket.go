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

// bucket is a backend in an S3-compatible store. A file that fits into one part is one PUT; a
// longer file is a multipart upload, completed at its end and aborted on any error. Either way the
// file is visible whole or not at all.
type bucket struct {
	name      string
	api       *minio.Core
	transport *http.Transport
	keys      *bucketKeys // nil if lookup returns the keys
}

// defaultRegion is the region if none is configured.
const defaultRegion = "us-east-1"

// Limits of the requests to a store.
const (
	partSize      = 8 << 20 // memory for a put; the minimum of S3 is 5 MiB
	maxParts      = 10_000  // limit of S3
	partTime      = 2 * time.Minute
	answerTime    = time.Minute // until the header of a response
	abortTime     = 15 * time.Second
	storeAttempts = 3
)

// openBucket parses a location s3://BUCKET?endpoint=…&region=…&path_style=true. Credentials
// come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else from the rest
// of AWS's chain (see bucketKeys). The region may come from AWS_REGION, AWS_DEFAULT_REGION or the
// profile.
func openBucket(ctx context.Context, location string, lookup func(string) (string, bool)) (*bucket, error) {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, errors.New("media must be s3://BUCKET?endpoint=…&region=…&path_style=true")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("media: what follows the question mark cannot be read")
	}
	for key := range query {
		if !slices.Contains([]string{"endpoint", "region", "path_style"}, key) {
			return nil, fmt.Errorf("media: %s is not known; there are endpoint, region and path_style", key)
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
		MaxRetries: storeAttempts,
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
		looking, cancel := context.WithTimeout(ctx, keysTime)
		defer cancel()
		if _, err := keys.get(looking); err != nil {
			return nil, noKeys(err, lookup)
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

// storeTransport returns the transport for the store. It does not limit transfers; contexts do.
func storeTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		ResponseHeaderTimeout: answerTime,
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
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return checkBackend(ctx, b, "the media bucket "+b.name)
}

// IsStarting reports whether err is the response of a running store that is not ready: 5xx, or too
// many requests. Rejected credentials or a missing bucket do not count.
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
		return b.within(ctx, partTime, func(ctx context.Context) error {
			_, err := b.api.PutObject(ctx, b.name, b.key(name), bytes.NewReader(part.Bytes()), int64(part.Len()), "", "", options)
			return err
		})
	}
	// An interrupted upload of a dead node would otherwise stay, and cost money, as long as the
	// file.
	if err := b.api.RemoveIncompleteUpload(ctx, b.name, b.key(name)); err != nil {
		return err
	}
	upload, err := b.api.NewMultipartUpload(ctx, b.name, b.key(name), options)
	if err != nil {
		return err
	}
	if err := b.putParts(ctx, name, upload, &part, r); err != nil {
		abort := b.within(context.WithoutCancel(ctx), abortTime, func(ctx context.Context) error {
			return b.api.AbortMultipartUpload(ctx, b.name, b.key(name), upload)
		})
		if minio.ToErrorResponse(abort).Code == "NoSuchUpload" {
			abort = nil // completed although the response was lost, or aborted by another node
		}
		return errors.Join(err, abort)
	}
	return nil
}

// putOptions returns the options for every file: its content type, for people who read the bucket,
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
		err := b.within(ctx, partTime, func(ctx context.Context) error {
			done, err := b.api.PutObjectPart(ctx, b.name, b.key(name), upload, len(parts)+1,
				bytes.NewReader(part.Bytes()), int64(part.Len()), minio.PutObjectPartOptions{})
			parts = append(parts, minio.CompletePart{PartNumber: len(parts) + 1, ETag: done.ETag})
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
	return b.within(ctx, partTime, func(ctx context.Context) error {
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

// within runs one request with a timeout.
func (b *bucket) within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
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

// open begins to read at once, so that an error is known before the response begins. With an empty
// span it reads nothing.
func (b *bucket) open(ctx context.Context, name string, size int64, expected span) (io.ReadSeekCloser, error) {
	o := &object{ctx: ctx, bucket: b, name: name, size: size, expected: expected}
	if expected.from < expected.to {
		o.at = expected.from
		if err := o.begin(); err != nil {
			return nil, err
		}
		o.at = 0
	}
	return o, nil
}

// object reads a file of a bucket. Each Read continues the previous one; a Seek sends a request
// only at the next Read.
type object struct {
	ctx      context.Context
	bucket   *bucket
	name     string
	size     int64
	expected span // the bytes to read in one request, if the first Read begins there

	at     int64         // offset of the next Read
	body   io.ReadCloser // the response being read, or nil
	bodyAt int64         // offset of the next byte of body
}

// begin requests the bytes from at on.
func (o *object) begin() error {
	to := o.size
	if o.at == o.expected.from {
		to = min(to, o.expected.to)
	}
	var options minio.GetObjectOptions
	if err := options.SetRange(o.at, to-1); err != nil {
		return err
	}
	body, info, _, err := o.bucket.api.GetObject(o.ctx, o.bucket.name, o.bucket.key(o.name), options)
	switch {
	case err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	case err != nil:
		return err
	case info.Size != to-o.at:
		return errors.Join(fmt.Errorf("the bucket answers %d bytes instead of %d", info.Size, to-o.at), body.Close())
	}
	o.body, o.bodyAt = body, o.at
	return nil
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	for {
		if o.at >= o.size {
			return 0, io.EOF
		}
		if o.body != nil && o.bodyAt != o.at {
			if err := o.end(); err != nil {
				return 0, err
			}
		}
		if o.body == nil {
			if err := o.begin(); err != nil {
				return 0, err
			}
		}
		n, err := o.body.Read(p)
		o.at += int64(n)
		o.bodyAt = o.at
		if errors.Is(err, io.EOF) {
			if err = o.end(); n == 0 && err == nil {
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
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek to before the beginning")
	}
	o.at = offset
	return offset, nil
}

// end closes the response being read.
func (o *object) end() error {
	body := o.body
	o.body = nil
	return body.Close()
}

// Close implements io.Closer.
func (o *object) Close() error {
	if o.body == nil {
		return nil
	}
	return o.end()
}
