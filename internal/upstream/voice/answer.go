package voice

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/sound"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// contentTypes are the types of the formats. Never changed.
var contentTypes = map[string]string{MP3: "audio/mpeg", Opus: "audio/opus", FLAC: "audio/flac", WAV: "audio/wav", PCM: "audio/pcm"}

// Piece is the content of one event of a vendor.
type Piece struct {
	Sound []byte
	// Input and Output are the vendor's token counts so far, or 0.
	Input, Output int64
	// Last is true for the last event of a complete answer.
	Last bool
}

// PieceReader reads a vendor's answer.
type PieceReader interface {
	// Next returns the next piece, which is valid until the next call. The error is io.EOF at the
	// end of a complete answer.
	Next() (Piece, error)
}

// readSize is the size of a read of sound, in bytes.
const readSize = 16 << 10

// byteReader reads an answer of plain sound.
type byteReader struct {
	from   io.Reader
	buffer []byte
}

// Bytes returns a reader for an answer of plain sound. If the answer is not sound by its content type, Bytes
// closes the answer and returns a *upstream.Failure.
func Bytes(answer *chatcall.Response) (PieceReader, error) {
	contentType, _, _ := mime.ParseMediaType(answer.ContentType)
	if !strings.HasPrefix(contentType, "audio/") && contentType != "application/octet-stream" {
		_ = answer.Body.Close() // not read
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("an answer of the type %q, not sound", contentType))
		f.Status = http.StatusOK
		return nil, f
	}
	return &byteReader{answer.Body, make([]byte, readSize)}, nil
}

// Next implements PieceReader.
func (s *byteReader) Next() (Piece, error) {
	n, err := s.from.Read(s.buffer)
	return Piece{Sound: s.buffer[:n]}, err
}

// eventReader reads an event stream.
type eventReader struct {
	reader *sse.Reader
	read   func(data []byte) (Piece, error)
	last   bool
}

// Events returns a reader for an event stream. maxEvent bounds an event, in bytes. read parses the data of
// an event; its error may be a *upstream.Failure.
func Events(c chatcall.Call, answer *chatcall.Response, maxEvent int, read func(data []byte) (Piece, error)) PieceReader {
	r := sse.NewReader(answer.Body, maxEvent)
	r.Reserve = c.Reserve
	return &eventReader{reader: r, read: read}
}

// Next implements PieceReader.
func (s *eventReader) Next() (Piece, error) {
	e, err := s.reader.Next()
	switch {
	case s.reader.Ended() && s.last:
		return Piece{}, io.EOF
	case s.reader.Ended(), errors.Is(err, sse.ErrTruncated), errors.Is(err, sse.ErrTooLarge), errors.Is(err, rawjson.ErrShape):
		return Piece{}, kind.Incomplete("the events ended without the last one, or are malformed")
	case errors.Is(err, sse.ErrNoRoom):
		return Piece{}, kind.ErrNoMemory
	case err != nil:
		return Piece{}, err
	case len(e.Data) == 0 || e.Data[0] != '{':
		return Piece{}, nil
	}
	p, err := s.read(e.Data)
	s.last = s.last || p.Last
	return p, err
}

// Answer returns the client's answer. It waits for the first sound, so that it can return an earlier failure.
// If there is an error, it closes answer. The error is always a *upstream.Failure.
func (r *SpeechRequest) Answer(ctx context.Context, answer *chatcall.Response, from PieceReader) (*chatcall.Response, error) {
	b := &body{Closer: answer.Body, from: from, request: r}
	for len(b.out) == 0 && b.err == nil {
		b.fill()
	}
	if b.err != nil && (!errors.Is(b.err, io.EOF) || !b.hasSound) {
		_ = answer.Body.Close() // the failure is known
		return nil, failure(ctx, b.err)
	}
	contentType := contentTypes[r.Format]
	if r.Events {
		contentType = "text/event-stream"
	}
	return &chatcall.Response{Body: b, ContentType: contentType}, nil
}

// failure returns the failure for an error before the first sound.
func failure(ctx context.Context, err error) *upstream.Failure {
	switch {
	case errors.Is(err, io.EOF):
		return upstream.Fail(fault.EmptyCompletion, errors.New("an answer without sound"))
	case errors.Is(err, kind.ErrNoMemory):
		return upstream.OutOfMemory()
	case errors.Is(err, kind.ErrIncomplete):
		return upstream.Fail(fault.UpstreamUnavailable, err)
	}
	return upstream.ConnectionFailure(ctx, err)
}

// body is the body of the client's answer.
type body struct {
	io.Closer
	from    PieceReader
	request *SpeechRequest

	out           []byte // not yet read
	err           error
	hasSound      bool // some sound was received
	input, output int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// fill reads the next piece.
func (b *body) fill() {
	piece, err := b.from.Next()
	b.err, b.out = err, b.out[:0]
	if piece.Input > 0 || piece.Output > 0 {
		b.input, b.output = piece.Input, piece.Output
	}
	if len(piece.Sound) > 0 {
		if !b.hasSound && b.request.Format == WAV {
			b.add(sound.WAVHeader(Rate, sound.UnknownLength))
		}
		b.hasSound = true
		b.add(piece.Sound)
	}
	if errors.Is(err, io.EOF) && b.hasSound && b.request.Events {
		b.out = sse.AppendLines(b.out, "", doneEvent(b.input, b.output))
	}
}

// add adds sound.
func (b *body) add(data []byte) {
	if !b.request.Events {
		b.out = append(b.out, data...)
		return
	}
	b.out = append(b.out, `data: {"type":"speech.audio.delta","audio":"`...)
	b.out = base64.StdEncoding.AppendEncode(b.out, data)
	b.out = append(b.out, "\"}\n\n"...)
}

// doneEvent returns the last event. A count that the vendor did not report is absent, because a client
// would believe a 0.
func doneEvent(input, output int64) []byte {
	switch {
	case input == 0 && output == 0:
		return []byte(`{"type":"speech.audio.done"}`)
	case output == 0:
		return fmt.Appendf(nil, `{"type":"speech.audio.done","usage":{"input_tokens":%d}}`, input)
	case input == 0:
		return fmt.Appendf(nil, `{"type":"speech.audio.done","usage":{"output_tokens":%d}}`, output)
	}
	return fmt.Appendf(nil, `{"type":"speech.audio.done","usage":{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d}}`,
		input, output, input+output)
}
