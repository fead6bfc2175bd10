package scene

import "syscall"

// Pause stops the process (SIGSTOP), like a machine that is being moved or has run out of memory.
// Resume continues it, and Kill ends it.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume continues a paused process (SIGCONT). It has no effect on a running process.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("send %s to tollgate: %v", s, err)
	}
}
