package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a child process: a target, or the upstream.
type process struct {
	cmd   *exec.Cmd
	url   string        // from the ready line
	ready time.Duration // from the start to the ready line
	log   *bytes.Buffer // output; owned by the reading goroutine until ended is closed
	ended chan struct{}
}

// startProcess starts a program and waits for its line `listening on URL`.
func startProcess(env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), log: &bytes.Buffer{}, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	in.Close() // the child has its own copy
	ready := make(chan string, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if _, url, ok := strings.Cut(line, "listening on "); ok && p.url == "" {
				p.url = strings.TrimSpace(url)
				ready <- p.url
			}
			if p.log.Len() < 1<<20 {
				p.log.WriteString(line)
			}
			if err != nil {
				if err != io.EOF {
					p.log.WriteString(err.Error())
				}
				return
			}
		}
	}()
	select {
	case <-ready:
		p.ready = time.Since(began)
		return p, nil
	case <-p.ended:
		return nil, fmt.Errorf("%s ended before it was ready: %w\n%s", program, p.cmd.Wait(), p.log)
	case <-time.After(time.Minute):
		_ = p.cmd.Process.Kill()
		return nil, fmt.Errorf("%s was not ready within a minute", program)
	}
}

// stop ends the process with SIGTERM, or with SIGKILL after a minute.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	kill := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	<-p.ended
	_ = p.cmd.Wait() // upstream and proxy die of the signal, which is an error for Wait
	return nil
}

// timeout returns a context for one step of the setup.
func timeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}
