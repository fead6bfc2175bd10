package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"syscall"
)

// dial connects to a host.
func (t *Transport) dial(ctx context.Context, h *host) (*conn, error) {
	address, port := h.key.address, "80"
	if h.key.tls {
		port = "443"
	}
	if i := strings.LastIndexByte(address, ':'); i < 0 || strings.HasSuffix(address, "]") { // has no port
		address = net.JoinHostPort(strings.Trim(address, "[]"), port)
	}
	plain, err := t.standard.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: plain, transport: t, host: h}
	if socket, ok := plain.(syscall.Conn); ok {
		if c.socket, err = socket.SyscallConn(); err != nil {
			_ = plain.Close() // err is the error
			return nil, fmt.Errorf("prepare the connection to %s: %w", address, err)
		}
	}
	if h.key.tls {
		if c.Conn, err = t.handshake(ctx, plain, address); err != nil {
			_ = plain.Close() // err is the error
			return nil, err
		}
	}
	c.reader = bufio.NewReaderSize(limitedReader{c}, t.standard.ReadBufferSize)
	return c, nil
}

// handshake negotiates TLS with HTTP/1.1.
func (t *Transport) handshake(ctx context.Context, plain net.Conn, address string) (net.Conn, error) {
	config := &tls.Config{}
	if t.standard.TLSClientConfig != nil {
		config = t.standard.TLSClientConfig.Clone()
	}
	config.NextProtos = []string{"http/1.1"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address) // dial made the address
	}
	ctx, cancel := context.WithTimeout(ctx, t.standard.TLSHandshakeTimeout)
	defer cancel()
	secure := tls.Client(plain, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secure, nil
}
