package media

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// The variables for TestVictimProcess.
const (
	envVictimDB    = "TOLLGATE_TEST_MEDIA_DB"
	envVictimPlace = "TOLLGATE_TEST_MEDIA_PLACE"
	envVictimStop  = "TOLLGATE_TEST_MEDIA_STOP" // number of lines before the process waits for the kill; 0 means no wait
)

// victimPicture returns the bytes for a name. Every fourth picture needs two parts of a bucket.
func victimPicture(t testing.TB, name string) []byte {
	seed := uint64(0)
	for _, c := range []byte(name) {
		seed = seed*31 + uint64(c)
	}
	size := 10_000 + int(seed%2_000_000)
	if seed%4 == 0 {
		size += partSize
	}
	return padded(t, size, seed)
}

// TestVictimProcess stores files until TestKillAtAnyInstant kills the process. As a test it does
// nothing.
func TestVictimProcess(t *testing.T) {
	address, location := os.Getenv(envVictimDB), os.Getenv(envVictimPlace)
	if address == "" {
		return
	}
	db := storetest.Open(t, address, store.Options{})
	s, err := Open(t.Context(), Options{DB: db, Location: location, Base: "http://x/media", Retention: retention, Lookup: s3server.Lookup})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := strconv.Atoi(os.Getenv(envVictimStop))
	if err != nil {
		t.Fatal(err)
	}
	report := func(step, name string) {
		fmt.Println(step, name)
		if stop--; stop == 0 {
			select {}
		}
	}
	for i := 0; ; i++ {
		job := fmt.Sprintf("job_%d_%d", os.Getpid(), i)
		var names []string
		if err := db.Update(t.Context(), func(tx *store.Tx) error { names, err = ReserveTx(tx, job, 1); return err }); err != nil {
			t.Fatal(err)
		}
		report("reserved", names[0])
		data := victimPicture(t, names[0])
		half := func() { report("half", names[0]) }
		source := io.MultiReader(bytes.NewReader(data[:len(data)/2]), callReader(half), bytes.NewReader(data[len(data)/2:]),
			callReader(func() { report("read", names[0]) }))
		f, err := s.Put(t.Context(), names[0], source, Limit{KindImage, 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		report("stored", names[0])
		err = db.Update(t.Context(), func(tx *store.Tx) error {
			nowMS, err := tx.NowMS()
			if err == nil {
				_, err = tx.Exec(publishText, nowMS, f.Name, job)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		report("published", names[0])
	}
}

// TestKillAtAnyInstant kills a process while it stores and publishes files. Every file reported as
// published must be served, and no other file may be served or stored in part. The
// test uses a folder with SQLite and a bucket with the other databases.
func TestKillAtAnyInstant(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, address string) {
		location := "file:" + t.TempDir()
		if strings.HasPrefix(address, "postgres") {
			s := s3server.Start(t)
			location = s.Location(s.URL)
		}
		db := storetest.Open(t, address, store.Options{}) // uses the database's clock, like the victim
		b := newTestStore(t, db, new(storetest.Clock), location)
		random := rand.New(rand.NewPCG(1, 2))
		interrupted := 0
		checkAll := func(steps map[string]string) {
			for name, step := range steps {
				interrupted += b.checkAfterKill(name, step)
			}
		}
		for line := range victimLines { // for each line printed for the second file
			checkAll(killVictim(t, address, location, victimLines+line+1, true, random))
		}
		for range 4 {
			checkAll(killVictim(t, address, location, 1+random.IntN(2*victimLines), false, random))
		}
		if interrupted == 0 {
			t.Error("no process was killed before a publication")
		}
	})
}

// victimLines is the number of lines printed by the process for each file.
const victimLines = 5

// killVictim starts a process and kills it after the given number of lines, at once if waits is true,
// otherwise a moment later. It returns the last reported step for each name.
func killVictim(t *testing.T, address, location string, lines int, waits bool, random *rand.Rand) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestVictimProcess$")
	stop := "0"
	if waits {
		stop = strconv.Itoa(lines)
	}
	cmd.Env = append(os.Environ(), envVictimDB+"="+address, envVictimPlace+"="+location, envVictimStop+"="+stop)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	steps := map[string]string{}
	scanner := bufio.NewScanner(out)
	readLine := func() bool {
		if !scanner.Scan() {
			return false
		}
		if step, name, ok := strings.Cut(scanner.Text(), " "); ok && isName(name) {
			steps[name] = step
		} else {
			t.Errorf("unexpected line %q of the process", scanner.Text())
		}
		return true
	}
	for i := range lines {
		if !readLine() {
			t.Fatalf("the process ended after %d lines: %v\n%s", i, cmd.Wait(), &stderr)
		}
	}
	if !waits {
		spin(random.IntN(40)) // kill between two lines
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for readLine() { // lines printed before the kill
	}
	_ = cmd.Wait() // killed
	return steps
}

// spin hashes some megabytes, as a delay without a clock.
func spin(rounds int) {
	for range rounds {
		_ = describe(make([]byte, 1<<20))
	}
}

// checkAfterKill checks a name after a kill, given the last reported step. It returns 0 if the file is
// public, else 1.
func (s *testStore) checkAfterKill(name, step string) int {
	s.t.Helper()
	rec, err := s.find(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	if rec == nil {
		s.t.Errorf("%s: a reserved name has no row", name)
		return 0
	}
	data := victimPicture(s.t, name)
	f := File{Name: name, Type: "image/png", Size: int64(len(data))}
	switch {
	case step == "published" && rec.state != statePublic,
		step == "stored" && rec.state != stateStored && rec.state != statePublic:
		s.t.Errorf("%s: the process reported %s, but the state is %s", name, step, rec.state)
	case rec.state == statePublic:
		s.wantServed(f, data)
		return 0
	case rec.state == stateStored && rec.file != f:
		s.t.Errorf("%s: stored as %+v, want %+v", name, rec.file, f)
	}
	s.wantGone(f)
	s.wantWholeOrNothing(f, rec.state == stateStored, data)
	// Another node takes over the job and stores the file again.
	if _, err := s.Put(s.t.Context(), name, bytes.NewReader(data), Limit{KindImage, f.Size}); err != nil {
		s.t.Errorf("%s: second Put: %v", name, err)
	}
	s.wantWholeOrNothing(f, true, data)
	return 1
}

// wantWholeOrNothing checks that the backend has the whole file or, unless required is true, no file.
func (s *testStore) wantWholeOrNothing(f File, required bool, data []byte) {
	s.t.Helper()
	content, err := s.backend.open(s.t.Context(), f.Name, f.Size, span{0, f.Size})
	if err != nil {
		if required {
			s.t.Errorf("%s: open failed: %v", f.Name, err)
		}
		return
	}
	defer content.Close()
	if got, err := io.ReadAll(content); err != nil || !bytes.Equal(got, data) {
		s.t.Errorf("%s: the backend has %s (%v), want %s", f.Name, describe(got), err, describe(data))
	}
}
