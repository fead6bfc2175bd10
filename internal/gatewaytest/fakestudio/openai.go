package fakestudio

import (
	"net/http"
	"testing"
)

// OpenAI is a fake of OpenAI's images and videos, and of vendors that are
// compatible with them.
type OpenAI struct{ Studio }

// NewOpenAI starts one. It ends with the test.
func NewOpenAI(t testing.TB) *OpenAI {
	o := &OpenAI{}
	o.open(t, http.HandlerFunc(o.strange))
	return o
}

// URL is the base address for a line.
func (o *OpenAI) URL() string { return o.Host() + "/v1" }
