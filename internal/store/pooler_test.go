package store_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// pooler stands between a node and PostgreSQL and behaves as PgBouncer before 1.21 in transaction
// mode: each transaction uses the free server connection that has waited longest, and prepared
// statements stay on their connection.
type pooler struct {
	t       *testing.T
	url     string
	listen  net.Listener
	idle    chan *serverConn
	group   sync.WaitGroup
	mu      sync.Mutex
	clients []net.Conn
}

// serverConn is a connection to the server, shared by clients in turn.
type serverConn struct {
	net.Conn
	front *pgproto3.Frontend
}

// newPooler starts a pooler with a number of connections to a database.
func newPooler(t *testing.T, database string, connections int) *pooler {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &pooler{t: t, listen: listen, idle: make(chan *serverConn, connections)}
	for range connections {
		p.idle <- p.dial(u)
	}
	u.Host = listen.Addr().String()
	p.url = u.String()
	p.group.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// dial logs in at the server.
func (p *pooler) dial(u *url.URL) *serverConn {
	p.t.Helper()
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &serverConn{conn, pgproto3.NewFrontend(conn, conn)}
	s.front.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber,
		Parameters: map[string]string{"user": u.User.Username(), "database": strings.TrimPrefix(u.Path, "/")}})
	if err := s.front.Flush(); err != nil {
		p.t.Fatal(err)
	}
	for {
		m, err := s.front.Receive()
		if err != nil {
			p.t.Fatal(err)
		}
		if _, ready := m.(*pgproto3.ReadyForQuery); ready {
			return s
		}
	}
}

func (p *pooler) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.clients = append(p.clients, conn)
		p.mu.Unlock()
		p.group.Go(func() {
			defer conn.Close()
			p.serve(pgproto3.NewBackend(conn, conn))
		})
	}
}

// serve lets a client in and lends it a connection for each transaction.
func (p *pooler) serve(client *pgproto3.Backend) {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if client.Flush() != nil {
		return
	}
	var server *serverConn
	for {
		m, err := client.Receive()
		if err != nil {
			if server != nil { // in the middle of a transaction
				_ = server.Close()
			}
			return
		}
		if _, leaves := m.(*pgproto3.Terminate); leaves && server == nil {
			return
		}
		if server == nil {
			server = <-p.idle
		}
		server.front.Send(m)
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			status, err := relay(server.front, client)
			if err != nil {
				_ = server.Close()
				return
			}
			if status == 'I' {
				p.idle <- server
				server = nil
			}
		}
	}
}

// relay passes the server's answers on until it is ready, and returns the state
// of its transaction.
func relay(server *pgproto3.Frontend, client *pgproto3.Backend) (status byte, err error) {
	if err := server.Flush(); err != nil {
		return 0, err
	}
	for {
		m, err := server.Receive()
		if err != nil {
			return 0, err
		}
		client.Send(m)
		if ready, ok := m.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, client.Flush()
		}
	}
}

// close ends the clients, then the connections to the server.
func (p *pooler) close() {
	_ = p.listen.Close()
	p.mu.Lock()
	for _, c := range p.clients {
		_ = c.Close() // it may have left
	}
	p.mu.Unlock()
	p.group.Wait()
	close(p.idle)
	for s := range p.idle {
		_ = s.Close()
	}
}

// TestMigrateThroughPooler lets nodes that start at once migrate through a pooler, whose
// connections change with each transaction: all nodes finish, and no lock stays on a connection of
// the pooler.
func TestMigrateThroughPooler(t *testing.T) {
	t.Parallel()
	const nodes, connections = 4, 3
	database := storetest.PostgreSQL(t)
	address := newPooler(t, database, connections).url + "&default_query_exec_mode=cache_describe"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errs := make(chan error, nodes)
	for range nodes {
		go func() {
			db, err := store.Open(ctx, address, store.Options{})
			if err == nil {
				err = errors.Join(db.Migrate(ctx), db.Close())
			}
			errs <- err
		}()
	}
	for range nodes {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	var locks int64
	err := storetest.Open(t, database, store.Options{}).View(ctx, func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT COUNT(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
			WHERE locktype = 'advisory' AND datname = current_database()`).Scan(&locks)
	})
	if err != nil || locks != 0 {
		t.Errorf("%d advisory locks are left, %v; want none", locks, err)
	}
}

// TestPreparedStatementsThroughPooler checks that the error behind such a pooler names the setting
// that helps, and that the setting helps.
func TestPreparedStatementsThroughPooler(t *testing.T) {
	t.Parallel()
	database := storetest.PostgreSQL(t)
	storetest.Open(t, database, store.Options{})
	address := newPooler(t, database, 2).url
	count := func(address string) (errs []error) {
		db, err := store.Open(t.Context(), address, store.Options{})
		if err != nil {
			return []error{err}
		}
		defer func() { _ = db.Close() }() // errors of the pooler do not matter
		for range 6 {
			errs = append(errs, db.View(t.Context(), func(tx *store.Tx) error {
				var n int64
				return tx.QueryRow(`SELECT COUNT(*) FROM node WHERE dead = $1`, 0).Scan(&n)
			}), node.Heartbeat(t.Context(), db, "none"))
		}
		return slices.DeleteFunc(errs, func(err error) bool { return err == nil || errors.Is(err, node.ErrFenced) })
	}
	const setting = "default_query_exec_mode=cache_describe"
	errs := count(address)
	if len(errs) == 0 {
		t.Error("got no errors through the pooler, want errors about prepared statements")
	}
	for _, err := range errs {
		if !strings.Contains(err.Error(), setting) {
			t.Errorf("got %v, want an error that names %s", err, setting)
		}
		if store.Refused(err) {
			t.Errorf("Refused(%v) is true, want false", err)
		}
	}
	if errs := count(address + "&" + setting); len(errs) > 0 {
		t.Errorf("with the setting: got %v, want no errors", errs)
	}
}
