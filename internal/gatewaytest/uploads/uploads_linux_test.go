// Package uploads owns the tests of large, broken and simultaneous uploads to the real process.
//
// Invariants: an upload is never in memory; an upload that breaks off reaches no line, leaves no hold and
// no temporary file, and is not charged.
package uploads

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

const (
	// secondCost is the price of a second of sound, in nano-dollars.
	secondCost = 1_000_000
	// soundRate is the bytes of sound per second in the files of the tests.
	soundRate = 8000
	// baseMemory is what the process may need without uploads, in bytes.
	baseMemory = 128 << 20
)

// place is a gateway with one transcription model `m` and its vendor.
type place struct {
	*scene.Process
	binary       string
	settings     map[string]string
	vendor       *vendor
	account, key string
}

// open starts a gateway with 512 MiB of memory and a number of descriptors. The model takes files of
// maxFileMB.
func open(t *testing.T, database string, descriptors, maxFileMB int) *place {
	t.Helper()
	p := &place{binary: scene.Binary(t), vendor: newVendor(t),
		settings: map[string]string{"database": database, "FAILING_LINE_KEY": scene.Credential, "TMPDIR": t.TempDir(),
			"max_connections": "1000", "max_connections_per_address": "1000"}}
	command, how := scene.Limited(t, p.binary, p.settings, 512<<20, descriptors)
	t.Logf("memory is limited by %s", how)
	p.Process = scene.Start(t, command, p.settings)
	p.SetCatalog(
		[]map[string]any{{"id": "m", "kind": "transcription", "price": map[string]any{"minutes": 0.06}, "max_file_mb": maxFileMB}},
		[]map[string]any{scene.ChatLine("main", p.vendor.URL, map[string]any{"timeouts": map[string]any{"total": "5m"}}, "m")})
	p.account, p.key = p.Account(1000, nil)
	return p
}

// check ends the process and checks that nothing but the charge has happened: no hold, no temporary
// file, clean books.
func (p *place) check(t *testing.T, charge money.Amount) {
	t.Helper()
	scene.Eventually(t, "no money is held, and no temporary file is open", func() bool {
		return p.FundsOf(p.account).Held == 0 && p.stored() == 0
	})
	if got := 1000*money.USD - p.FundsOf(p.account).Balance; got != charge {
		t.Errorf("%s USD are charged, want %s", got, charge)
	}
	if left, err := os.ReadDir(p.settings["TMPDIR"]); len(left) > 0 || err != nil {
		t.Errorf("the folder of temporary files has %v, %v, want nothing", left, err)
	}
	p.CheckStop(t)
	scene.CheckBooks(t, p.binary, p.settings)
}

// stored returns the number of the process's open uploads.
func (p *place) stored() (n int) {
	for _, target := range p.Descriptors() {
		if strings.HasPrefix(target, p.settings["TMPDIR"]) {
			n++
		}
	}
	return n
}

// vendor is a provider of transcriptions. It counts the bytes of each body.
type vendor struct {
	*httptest.Server
	mu    sync.Mutex
	sizes []int64
	wait  chan struct{} // if not nil, answers wait until it is closed
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.sizes = append(v.sizes, n)
		wait := v.wait
		v.mu.Unlock()
		if wait != nil {
			<-wait
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"hi"}`)
	}))
	t.Cleanup(v.Close)
	return v
}

// calls returns the number of whole bodies.
func (v *vendor) calls() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.sizes)
}

const contentType = "multipart/form-data; boundary=B"

// The form before and after its file.
const (
	formStart = "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n" +
		"--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
	formEnd = "\r\n--B--\r\n"
)

// form returns a form with a WAV of a size, without holding the file, and its length.
func form(size int64) (io.Reader, int64) {
	le32 := func(n int64) string { return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) }
	header := "RIFF" + le32(size-8) + "WAVEfmt " + le32(16) + "\x01\x00\x01\x00" + le32(soundRate) + le32(soundRate) + "\x01\x00\x08\x00data" +
		le32(size-44)
	sound := io.LimitReader(zeros{}, size-int64(len(header)))
	return io.MultiReader(strings.NewReader(formStart), strings.NewReader(header), sound, strings.NewReader(formEnd)),
		int64(len(formStart)+len(formEnd)) + size
}

// zeros is endless silence.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// countReader counts the bytes read.
type countReader struct {
	io.Reader
	read int64
}

// Read implements io.Reader.
func (r *countReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += int64(n)
	return n, err
}

// send sends a body of a length, or chunked if length is -1, and returns the status and the answer.
func (p *place) send(t *testing.T, client *http.Client, body io.Reader, length int64) (int, string) {
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/v1/audio/transcriptions", body)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", contentType)
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(raw)
}

// TestBrokenUploads breaks off uploads, and sends forms that are shorter or longer than their
// Content-Length.
func TestBrokenUploads(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, database string) {
		p := open(t, database, 1024, 1)
		from, _ := form(100_000)
		whole, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		half := string(whole[:len(whole)/2])
		length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", n) }
		const chunked, refused = "Transfer-Encoding: chunked\r\n\r\n", `"code":"invalid_request"`
		for _, c := range []struct {
			name, sent string
			status     string // "" without an answer
		}{
			{"a client that leaves in the file", length(len(whole)) + half, ""},
			{"a client that leaves in a chunk", chunked + fmt.Sprintf("%x\r\n", len(whole)) + half, ""},
			{"a client that leaves after a chunk", chunked + fmt.Sprintf("%x\r\n%s\r\n", len(half), half), ""},
			{"a client that leaves before the file", length(len(whole)) + formStart[:40], ""},
			{"a form longer than its Content-Length", length(len(half)) + string(whole), "400"},
			{"a form without its end", length(len(whole)-len(formEnd)) + string(whole[:len(whole)-len(formEnd)]), "400"},
			{"a chunk without a length", chunked + "zz\r\n" + half, "400"},
			{"a Content-Length without a body", length(1) + "x", "400"},
			{"a negative Content-Length", "Content-Length: -5\r\n\r\n" + half, "400"},
			{"two lengths", fmt.Sprintf("Content-Length: %d\r\n%s%x\r\n%s\r\n0\r\n\r\n", len(whole), chunked, len(half), half), "400"},
		} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(conn, "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+p.key+
				"\r\nContent-Type: "+contentType+"\r\n"+c.sent)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if c.status != "" {
				got, err := io.ReadAll(io.LimitReader(conn, 4096))
				if !bytes.HasPrefix(got, []byte("HTTP/1.1 "+c.status)) {
					t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.status)
				}
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		p.check(t, 0)
		if n := p.vendor.calls(); n != 0 {
			t.Errorf("the vendor got %d calls, want none", n)
		}
	})
}

// TestLargeUploads sends a file of 2 GB to a model that takes 25 MB, and a large file to a model that takes
// it. The first is refused without being read on. The process needs no memory for either. The large file
// has 100 MB, with TOLLGATE_TORTURE 2 GB.
func TestLargeUploads(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		p := open(t, storetest.SQLite(t), 1024, 25)
		for _, name := range []string{"with a length", "chunked"} {
			body, length := form(2<<30 - 1)
			if name == "chunked" {
				length = -1
			}
			sent := &countReader{Reader: body}
			status, answer := p.send(t, http.DefaultClient, sent, length)
			if status != http.StatusRequestEntityTooLarge || !strings.Contains(answer, `"code":"request_too_large"`) ||
				!strings.Contains(answer, `"param":"file"`) {
				t.Errorf("%s: got %d %s, want 413 request_too_large", name, status, answer)
			}
			if sent.read > 64<<20 {
				t.Errorf("%s: the gateway read %d MiB, want little more than the 25 it takes", name, sent.read>>20)
			}
		}
		p.checkPeak(t, baseMemory)
		p.check(t, 0)
	})
	t.Run("taken", func(t *testing.T) {
		t.Parallel()
		size := int64(100 << 20)
		if os.Getenv("TOLLGATE_TORTURE") != "" {
			size = 2<<30 - 1
		}
		p := open(t, storetest.SQLite(t), 1024, 2048)
		body, length := form(size)
		status, answer := p.send(t, http.DefaultClient, body, length)
		if status != http.StatusOK || answer != `{"text":"hi"}` {
			t.Errorf("got %d %s, want 200 and the vendor's answer", status, answer)
		}
		if len(p.vendor.sizes) != 1 || p.vendor.sizes[0] < size {
			t.Errorf("the vendor got bodies of %v bytes, want one with a file of %d", p.vendor.sizes, size)
		}
		p.checkPeak(t, baseMemory)
		p.check(t, charge(size))
	})
}

// charge returns the charge for a file of a size without the vendor's count.
func charge(size int64) money.Amount {
	return money.Amount((size-44+soundRate-1)/soundRate) * secondCost
}

// checkPeak checks the peak memory of the process.
func (p *place) checkPeak(t *testing.T, most int64) {
	t.Helper()
	peak := p.Peak()
	t.Logf("the process needed %d MiB", peak>>20)
	if peak > most {
		t.Errorf("the process needed %d MiB, want at most %d", peak>>20, most>>20)
	}
}

// TestManyUploads sends 200 files at once to a process with 512 MiB of memory. All files are stored, and
// all calls of the line run, at the same time. With few descriptors, uploads without a free one get 503.
// A file has 1 MB, with TOLLGATE_TORTURE 10 MB.
func TestManyUploads(t *testing.T) {
	t.Parallel()
	const uploads = 200
	size := int64(1 << 20)
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		size = 10 << 20
	}
	t.Run("together", func(t *testing.T) {
		t.Parallel()
		p := open(t, storetest.SQLite(t), 1024, 25)
		p.vendor.wait = make(chan struct{})
		answer := sync.OnceFunc(func() { close(p.vendor.wait) })
		t.Cleanup(answer)
		counts := p.sendAll(t, uploads, size)
		scene.Eventually(t, "all calls run at once", func() bool { return p.vendor.calls() == uploads })
		if n := p.stored(); n != uploads {
			t.Errorf("%d files are stored, want %d", n, uploads)
		}
		if held := p.FundsOf(p.account).Held; held != uploads*charge(size) {
			t.Errorf("%s USD are held, want %s", held, uploads*charge(size))
		}
		answer()
		if got := counts(); got[http.StatusOK] != uploads {
			t.Errorf("statuses %v, want %d times 200", got, uploads)
		}
		p.checkPeak(t, 2*baseMemory)
		p.check(t, uploads*charge(size))
	})
	t.Run("few descriptors", func(t *testing.T) {
		t.Parallel()
		p := open(t, storetest.SQLite(t), 250, 25)
		got := p.sendAll(t, uploads, size)()
		answered := got[http.StatusOK]
		if answered == 0 || answered+got[http.StatusServiceUnavailable]+got[0] != uploads {
			t.Errorf("statuses %v, want 200 or 503, or no connection", got)
		}
		t.Logf("%v", got)
		p.checkPeak(t, 2*baseMemory)
		p.check(t, money.Amount(answered)*charge(size))
	})
}

// sendAll sends n files of a size at once. counts waits for the answers and returns the number of each
// status, 0 for none.
func (p *place) sendAll(t *testing.T, n int, size int64) (counts func() map[int]int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	statuses := make(chan int, n)
	for range n {
		go func() {
			body, length := form(size)
			status, answer := p.send(t, client, body, length)
			if status != http.StatusOK && status != 0 && !strings.Contains(answer, `"code":"service_unavailable"`) {
				t.Errorf("%d %s", status, answer)
			}
			statuses <- status
		}()
	}
	return func() map[int]int {
		defer client.CloseIdleConnections()
		all := map[int]int{}
		for range n {
			all[<-statuses]++
		}
		return all
	}
}
