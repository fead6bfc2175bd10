package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

func TestDataURI(t *testing.T) {
	t.Parallel()
	of := func(size int64, data string, err error) Reference {
		return Reference{Type: "image/png", Size: size, Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(data)), err
		}}
	}
	if got, err := of(3, "abc", nil).DataURI(t.Context()); err != nil || got != "data:image/png;base64,YWJj" {
		t.Errorf("%q, %v", got, err)
	}
	for name, r := range map[string]Reference{
		"gone": of(3, "", errors.New("no such file")),
		"cut":  of(5, "abc", nil),
	} {
		if got, err := r.DataURI(t.Context()); err == nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if !of(1, "", nil).Image() || (Reference{Type: "video/mp4"}).Image() {
		t.Error("an image is told by its type")
	}
}

func TestUnfit(t *testing.T) {
	t.Parallel()
	for kind, job := range map[string]fault.Code{KindImage: fault.UpstreamError, KindVideo: fault.InvalidMaterial} {
		tr := Unfit(kind, "Reference %d is too large.", 2)
		if tr.Job != job || tr.Next != NextLine || tr.Health != HealthNone || tr.Message != "Reference 2 is too large." {
			t.Errorf("%s: %+v", kind, tr)
		}
	}
}

func TestAddParams(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		``:                       `{"model":"m"}`,
		`{}`:                     `{"model":"m"}`,
		`{"seed":1.50,"z":null}`: `{"model":"m","seed":1.50,"z":null}`,
		`{"model":"other"}`:      "",
		`{"n":4}`:                "",
		`[1]`:                    "",
		`{`:                      "",
	} {
		to := map[string]any{"model": "m"}
		err := Work{Kind: KindVideo, Params: json.RawMessage(params)}.AddParams(to, "n")
		got, _ := json.Marshal(to)
		var tr *Trouble
		switch {
		case want == "" && (!errors.As(err, &tr) || tr.Job != fault.InvalidRequest || tr.Health != HealthNone):
			t.Errorf("%s: %v", params, err)
		case want != "" && (err != nil || !bytes.Equal(got, []byte(want))):
			t.Errorf("%s: %s, %v", params, got, err)
		}
	}
}
