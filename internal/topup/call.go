package topup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// callTime bounds one call of a provider's API.
const callTime = 10 * time.Second

// ProviderCall is a call of a provider's API.
type ProviderCall struct {
	Method, URL string
	Params      url.Values  // the query of a GET, else the form in the body
	Header      http.Header // may be nil
	MaxAnswer   int64       // bytes
}

// Send sends the call and reads the answer, whatever its status. Errors do not contain the address, because
// its parameters may be secret.
func (c ProviderCall) Send(ctx context.Context, client *http.Client) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	address, body := c.URL, io.Reader(http.NoBody)
	if c.Method == http.MethodGet {
		address += "?" + c.Params.Encode()
	} else {
		body = strings.NewReader(c.Params.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, address, body)
	if err != nil {
		return 0, nil, errors.New("the address of the API is not valid")
	}
	for name, values := range c.Header {
		req.Header[name] = values
	}
	if c.Method != http.MethodGet {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, c.MaxAnswer+1))
	if err == nil && int64(len(answer)) > c.MaxAnswer {
		err = fmt.Errorf("the answer is larger than %d bytes", c.MaxAnswer)
	}
	return resp.StatusCode, answer, err
}
