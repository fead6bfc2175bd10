package exchange

import (
	"net"
	"net/http"
	"time"
)

// Bounds of the shared pool. The time a provider may take to answer is not
// here: the deadlines of lines are in the call's context.
const (
	dialWait       = 10 * time.Second // one address; also the bound of a TLS handshake
	idleWait       = 55 * time.Second // below the usual 60 s and 75 s of servers: servers rarely close first
	headerWait     = time.Hour        // last resort for a call without a deadline
	idlePerHost    = 1024             // connections kept for the next burst
	idleConns      = 4096             // the same over all hosts
	maxHeaderBytes = 64 << 10
)

// NewTransport returns the connection pool for all lines of a process.
//
// It uses no proxy from the environment: the way out of a gateway is the operator's network, and a
// stray variable must not reroute credentials. It requests no compression, so bytes pass through
// unchanged. It uses HTTP/2 if the provider offers HTTP/2.
func NewTransport() *http.Transport {
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
