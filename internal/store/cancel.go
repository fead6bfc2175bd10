package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// errNoCancel is the error of a suppressed cancel request.
var errNoCancel = errors.New("connections that write never send cancel requests")

// dialKey is the context key of a dial for a new connection.
type dialKey struct{}

// withoutCancel returns a connector that drops connections at a deadline without a cancel request
// to the server. If a cancel request meets a COMMIT that waits for its standby, the server ends the
// wait and answers success. The commit is then visible but on no standby, and is lost with the
// primary. A dropped connection leaves such a COMMIT waiting, with its locks. The driver dials
// separately for a cancel request, so every dial outside Connect is a cancel request.
func withoutCancel(config *pgx.ConnConfig) driver.Connector {
	own := config.Copy()
	dial := own.DialFunc
	own.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if ctx.Value(dialKey{}) == nil {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	return noCancelConnector{stdlib.GetConnector(*own)}
}

type noCancelConnector struct{ driver.Connector }

// Connect implements driver.Connector.
func (c noCancelConnector) Connect(ctx context.Context) (driver.Conn, error) {
	return c.Connector.Connect(context.WithValue(ctx, dialKey{}, true))
}
