package exchange

import (
	"net"
	"net/http"
	"time"

	"tollgate/internal/upstream/http1"
)

// Bounds of the shared pool. The response time of a provider is bounded by the deadlines of lines,
// in the call's context.
const (
	dialWait       = 10 * time.Second // for one address; also bounds a TLS handshake
	idleWait       = 55 * time.Second // below the usual 60 s and 75 s of servers, so that servers rarely close first
	headerWait     = time.Hour        // last resort for a call without a deadline
	idlePerHost    = 1024             // connections kept for the next burst
	idleConns      = 4096             // idle connections to all hosts
	maxHeaderBytes = 64 << 10
)

// NewTransport returns the connection pool for all lines of a process. It sends HTTP/1.1 on the
// caller's goroutine, and HTTP/2 as NewStandardTransport does.
func NewTransport() *http1.Transport { return http1.New(NewStandardTransport()) }

// NewStandardTransport returns a pool of net/http's own connections.
//
// It uses no proxy from the environment, because a stray variable must not reroute credentials. It
// requests no compression, so that bodies pass through unchanged. It uses HTTP/2 if the provider
// supports HTTP/2.
func NewStandardTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: dialWait, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleWait,
		TLSHandshakeTimeout:    dialWait,
		ResponseHeaderTimeout:  headerWait,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ReadBufferSize:         8 << 10,
		HTTP2: &http.HTTP2Config{
			// Detects a silently broken connection.
			SendPingTimeout:  30 * time.Second,
			PingTimeout:      15 * time.Second,
			WriteByteTimeout: 30 * time.Second,
		},
	}
}
