package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load is the result of one measurement, as the callers saw it.
type load struct {
	requests   int
	failed     int // answers without status 200 or incomplete
	took       time.Duration
	p50, p99   time.Duration
	firstError string
}

// drive sends the scenario's request to an address over the scenario's connections for a span. The client
// is minimal, because it shares the machine with the server under test.
func drive(s scenario, address, key string, span time.Duration) (load, error) {
	to, err := url.Parse(address)
	if err != nil {
		return load{}, err
	}
	body := s.body()
	request := fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		to.Path, to.Host, key, len(body), body)

	due := make(chan time.Time)
	start := time.Now()
	if s.rate > 0 {
		due = make(chan time.Time, s.rate)
		go pace(due, s.rate, start, span)
	} else {
		close(due)
	}
	var wg sync.WaitGroup
	var failed atomic.Int64
	var firstError atomic.Pointer[string]
	times := make([][]time.Duration, s.connections)
	for i := range times {
		wg.Go(func() {
			c := &caller{address: to.Host, request: request, stream: s.stream, end: s.form.end}
			defer c.close()
			for time.Since(start) < span {
				began := time.Now()
				if s.rate > 0 {
					planned, open := <-due
					if !open {
						return
					}
					began = planned
				}
				if err := c.call(); err != nil {
					failed.Add(1)
					text := err.Error()
					firstError.CompareAndSwap(nil, &text)
					c.close()
					continue
				}
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	l := load{took: time.Since(start), failed: int(failed.Load())}
	if text := firstError.Load(); text != nil {
		l.firstError = *text
	}
	all := slices.Concat(times...)
	slices.Sort(all)
	l.requests, l.p50, l.p99 = len(all), percentile(all, 0.50), percentile(all, 0.99)
	return l, nil
}

// pace sends the due time of each request. Latency counts from the due time, so a server cannot
// hide its delay.
func pace(due chan<- time.Time, rate int, start time.Time, span time.Duration) {
	defer close(due)
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for sent := 0; ; {
		<-ticker.C
		elapsed := time.Since(start)
		if elapsed >= span {
			return
		}
		for ; sent < int(elapsed.Seconds()*float64(rate)); sent++ {
			select {
			case due <- start.Add(time.Duration(sent) * time.Second / time.Duration(rate)):
			default: // one second of requests is already waiting
			}
		}
	}
}

// caller is one keep-alive connection.
type caller struct {
	address string
	request []byte
	stream  bool
	end     string // in the last bytes of a complete stream
	conn    net.Conn
	in      *bufio.Reader
}

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// call sends the request and reads the answer to its end.
func (c *caller) call() error {
	if c.conn == nil {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return err
		}
		c.conn, c.in = conn, bufio.NewReaderSize(conn, 64<<10)
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	code := 0
	if parts := bytes.SplitN(status, []byte(" "), 3); len(parts) > 1 {
		if code, err = strconv.Atoi(string(parts[1])); err != nil {
			return err
		}
	}
	length, chunked, err := readHeader(c.in)
	if err != nil {
		return err
	}
	size, done, err := readBody(c.in, length, chunked, c.end)
	switch {
	case err != nil:
		return err
	case code != 200:
		return fmt.Errorf("status %d", code)
	case size == 0 || (c.stream && !done):
		return fmt.Errorf("an answer of %d bytes without an end", size)
	}
	return nil
}
