package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// errNoCancel is why a cancel request is not sent.
var errNoCancel = errors.New("connections that write never send cancel requests")

// dialing marks the context of a dial that opens a connection.
type dialing struct{}

// neverCancels returns a connector whose connections, when a deadline passes,
// are dropped without a cancel request to the server. A cancel that meets a
// COMMIT that waits for its standby makes the server end the wait and answer
// success: the commit is visible then and no standby has it, and it is lost if
// the primary is lost. A dropped connection leaves such a COMMIT waiting, with
// its locks. The driver sends its cancel requests over a dial of their own,
// which is the one that does not come from Connect.
func neverCancels(config *pgx.ConnConfig) driver.Connector {
	own := config.Copy()
	dial := own.DialFunc
	own.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(dialing{}) == nil {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	return cancelless{stdlib.GetConnector(*own)}
}

type cancelless struct{ driver.Connector }

// Connect implements driver.Connector.
func (c cancelless) Connect(ctx context.Context) (driver.Conn, error) {
	return c.Connector.Connect(context.WithValue(ctx, dialing{}, true))
}
