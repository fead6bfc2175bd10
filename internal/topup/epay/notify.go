package epay

import (
	"context"
	"crypto/hmac"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"tollgate/internal/topup"
)

// sign returns the signature of parameters: the MD5 sum of the parameters without empty ones, sign and
// sign_type, sorted by name and joined as NAME=VALUE with &, not URL-encoded, followed by the key.
func sign(q url.Values, key string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if value := q.Get(name); name != "sign" && name != "sign_type" && value != "" {
			pairs = append(pairs, name+"="+value)
		}
	}
	sum := md5.Sum([]byte(strings.Join(pairs, "&") + key))
	return hex.EncodeToString(sum[:])
}

// maxParameters bounds the parameters of a message. Sites send about ten.
const maxParameters = 50

var parameterName = regexp.MustCompile(`^[0-9A-Za-z_]+$`)

// checkSignature checks the parameters of a message. The signed text does not separate names and values
// safely, so a value with & or a name with other characters than letters is refused: otherwise the
// signature of one message would be valid for others. It returns topup.ErrForged for a message without the
// site's signature.
func checkSignature(q url.Values, pid, key string) error {
	if key == "" { // anyone can compute a signature without a key
		return fmt.Errorf("%w: there is no key", topup.ErrForged)
	}
	if len(q) > maxParameters {
		return fmt.Errorf("%w: it has more than %d parameters", topup.ErrForged, maxParameters)
	}
	for name, values := range q {
		switch {
		case len(values) != 1:
			return fmt.Errorf("%w: it has a parameter twice", topup.ErrForged)
		case !parameterName.MatchString(name) || strings.Contains(values[0], "&"):
			return fmt.Errorf("%w: its parameters can be read in several ways", topup.ErrForged)
		}
	}
	if kind := q.Get("sign_type"); kind != "" && !strings.EqualFold(kind, "MD5") {
		return fmt.Errorf("%w: its sign_type is not MD5", topup.ErrForged)
	}
	got, err := hex.DecodeString(q.Get("sign"))
	want, _ := hex.DecodeString(sign(q, key)) // always valid
	switch {
	case err != nil || !hmac.Equal(got, want):
		return topup.ErrForged
	case q.Get("pid") != pid:
		return fmt.Errorf("%w: it is for another pid", topup.ErrForged)
	}
	return nil
}

// Verify implements topup.PaymentProvider. Sites send a GET request, some a POST request with a form. The
// customer's browser returns with the same parameters, so a message proves little. Sync asks the site.
func (c *Service) Verify(_ context.Context, r *http.Request, body []byte) (topup.Hint, error) {
	query := r.URL.RawQuery
	if r.Method == http.MethodPost {
		query = string(body)
	}
	q, err := url.ParseQuery(query)
	if err != nil {
		return topup.Hint{}, fmt.Errorf("%w: its parameters are not valid", topup.ErrForged)
	}
	if err := checkSignature(q, c.o.PID, c.o.Key); err != nil {
		return topup.Hint{}, err
	}
	n := topup.Hint{Object: q.Get("trade_no")}
	// A message about anything but a success changes nothing; the sweep asks about the top-up anyway.
	if id := q.Get("out_trade_no"); strings.HasPrefix(id, topup.IDPrefix) && q.Get("trade_status") == "TRADE_SUCCESS" {
		n.Topup, n.Payment = id, n.Object
	}
	return n, nil
}
