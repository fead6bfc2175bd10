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

// The variables that turn this test binary into a process that stores files until killed.
const (
	envVictimDB    = "TOLLGATE_TEST_MEDIA_DB"
	envVictimPlace = "TOLLGATE_TEST_MEDIA_PLACE"
	envVictimStop  = "TOLLGATE_TEST_MEDIA_STOP" // number of lines before it waits for the kill; 0 means no wait
)

// victimPicture returns the bytes for a name; they depend only on the name. Some pictures fit into
// one part of a bucket, some do not.
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

// TestVictim is not a test: it is the process killed by TestAKillAtAnyInstant. By itself it stores
// nothing.
func TestVictim(t *testing.T) {
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
	say := func(step, name string) {
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
		say("reserved", names[0])
		data := victimPicture(t, names[0])
		half := func() { say("half", names[0]) }
		source := io.MultiReader(bytes.NewReader(data[:len(data)/2]), call(half), bytes.NewReader(data[len(data)/2:]),
			call(func() { say("read", names[0]) }))
		f, err := s.Put(t.Context(), names[0], source, Limit{KindImage, 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		say("stored", names[0])
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
		say("published", names[0])
	}
}

// TestAKillAtAnyInstant kills a process again and again while it stores and publishes files. Every
// file reported as published must be served completely, and no other file may be served or stored
// in part. SQLite is tested with a folder and PostgreSQL with a bucket, because storage does not
// depend on the database.
func TestAKillAtAnyInstant(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, address string) {
		location := "file:" + t.TempDir()
		if strings.HasPrefix(address, "postgres") {
			s := s3server.Start(t)
			location = s.Location(s.URL)
		}
		db := storetest.Open(t, address, store.Options{}) // uses the database's clock, like the victim
		b := newBench(t, db, new(storetest.Clock), location)
		random := rand.New(rand.NewPCG(1, 2))
		interrupted := 0
		survey := func(steps map[string]string) {
			for name, step := range steps {
				interrupted += b.survey(name, step)
			}
		}
		for line := range victimLines { // for each line printed for the second file
			survey(victim(t, address, location, victimLines+line+1, true, random))
		}
		for range 4 {
			survey(victim(t, address, location, 1+random.IntN(2*victimLines), false, random))
		}
		if interrupted == 0 {
			t.Error("no kill happened before a publication")
		}
	})
}

// victimLines is the number of lines printed by the process for each file.
const victimLines = 5

// victim starts a process and kills it after the given number of lines, at a wait, or a moment
// later. It returns the last reported step for each name.
func victim(t *testing.T, address, location string, lines int, waits bool, random *rand.Rand) map[string]string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestVictim$")
	stop := "0"
	if waits {
		stop = strconv.Itoa(lines)
	}
	cmd.Env = append(os.Environ(), envVictimDB+"="+address, envVictimPlace+"="+location, envVictimStop+"="+stop)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var why bytes.Buffer
	cmd.Stderr = &why
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
			t.Fatalf("the process ended after %d lines: %v\n%s", i, cmd.Wait(), &why)
		}
	}
	if !waits {
		spin(random.IntN(40)) // so that kills fall between the lines
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for readLine() { // lines printed before the kill
	}
	_ = cmd.Wait() // killed
	return steps
}

// spin delays without a clock: it hashes some megabytes.
func spin(rounds int) {
	for range rounds {
		_ = sum(make([]byte, 1<<20))
	}
}

// survey checks a name after a kill in the given step. It returns 1 if the step was before the
// publication, else 0.
func (b *bench) survey(name, step string) int {
	b.t.Helper()
	rec, err := b.find(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	if rec == nil {
		b.t.Errorf("%s: a reserved name has no row", name)
		return 0
	}
	data := victimPicture(b.t, name)
	f := File{Name: name, Type: "image/png", Size: int64(len(data))}
	switch {
	case step == "published" && rec.state != statePublic,
		step == "stored" && rec.state != stateStored && rec.state != statePublic:
		b.t.Errorf("%s: %s, but its row is %s", name, step, rec.state)
	case rec.state == statePublic:
		b.wantServed(f, data)
		return 0
	case rec.state == stateStored && rec.file != f:
		b.t.Errorf("%s: stored as %+v, want %+v", name, rec.file, f)
	}
	b.wantGone(f)
	b.wantWholeOrNothing(f, rec.state == stateStored, data)
	// The node that takes over the job stores the file again.
	if _, err := b.Put(b.t.Context(), name, bytes.NewReader(data), Limit{KindImage, f.Size}); err != nil {
		b.t.Errorf("%s: second Put: %v", name, err)
	}
	b.wantWholeOrNothing(f, true, data)
	return 1
}

// wantWholeOrNothing checks that a backend has all bytes of a file or, unless must is set, no
// bytes.
func (b *bench) wantWholeOrNothing(f File, must bool, data []byte) {
	b.t.Helper()
	content, err := b.backend.open(b.t.Context(), f.Name, f.Size, span{0, f.Size})
	if err != nil {
		if must {
			b.t.Errorf("%s: %v", f.Name, err)
		}
		return
	}
	defer content.Close()
	if got, err := io.ReadAll(content); err != nil || !bytes.Equal(got, data) {
		b.t.Errorf("%s: the backend has %s (%v), want %s", f.Name, sum(got), err, sum(data))
	}
}
