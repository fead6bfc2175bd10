package scene

import "syscall"

// Pause stops the process where it stands (SIGSTOP), as a machine does that is
// moved or has run out of memory. It hears and says nothing until Resume; Kill
// ends it all the same.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on (SIGCONT); another one does not notice.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("send %s to tollgate: %v", s, err)
	}
}
