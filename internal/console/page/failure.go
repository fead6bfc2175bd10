package page

import (
	"errors"
	"net/http"

	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/store"
)

// explainUncertain returns the error to show for err. After an unconfirmed commit, the error
// warns of a possible change.
func explainUncertain(err error) error {
	if errors.Is(err, store.ErrUncertain) {
		return fault.New(fault.ServiceUnavailable,
			"The database did not confirm the change, so it may have been made. Check before you try again.").WithCause(err)
	}
	return err
}

// failure is the content of an error page.
type failure struct {
	Title, Text, Request string
	RetryHref            string // address of the retry, or empty if a retry cannot help
}

func (srv *server) showError(x *httpapi.Exchange, f *fault.Error) {
	x.Header().Del("WWW-Authenticate")
	if httpapi.RedirectTrailingSlash(x) {
		return
	}
	shown := failure{Title: "Something went wrong", Text: f.Message(), Request: x.ID}
	switch {
	case f.Code == fault.NotFound:
		shown.Title = "Not found"
		if x.Endpoint() == "unknown" {
			shown.Text = "There is no such page. Check its address."
		}
	case f.Status() == http.StatusServiceUnavailable:
		shown.Title = "Temporarily unavailable"
		if f.Cause != nil {
			shown.Text = "The service has a temporary problem. Running requests are not affected. Try again in a moment."
		}
		if x.Request.Method == http.MethodGet {
			shown.RetryHref = x.Request.URL.RequestURI()
		}
	}
	frame := ui.Layout{Title: shown.Title, Theme: themeOf(x.Request), NoKeys: noKeys(x.Request), Home: Base, Main: shown}
	contentType := "text/html; charset=utf-8"
	whole, err := srv.common.Render("error", frame)
	if err != nil {
		srv.Log.Error("the page of an error cannot be drawn", "request", x.ID, "cause", err)
		contentType = "text/plain; charset=utf-8"
		whole = []byte(shown.Text)
	}
	x.Header().Set("Content-Type", contentType)
	x.WriteHeader(f.Status())
	_, _ = x.Write(whole) // the reader may have disconnected
}
