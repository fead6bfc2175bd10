package media

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakecloud"
	"tollgate/internal/gatewaytest/s3server"
)

// environment sets the given variables of AWS and unsets all others. Because of t.Setenv, the test
// is not parallel.
func environment(t *testing.T, variables map[string]string) {
	t.Helper()
	home := t.TempDir()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{"HOME": home, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

// file writes a file for the test and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// sharedKeys returns the text of a shared credentials file.
func sharedKeys(profile, key, secret string) string {
	return fmt.Sprintf("[%s]\naws_access_key_id = %s\naws_secret_access_key = %s\n", profile, key, secret)
}

// openBucketStore opens a store on the bucket with the credentials of the process.
func openBucketStore(t *testing.T, s *s3server.Server, log *strings.Builder) (*Store, error) {
	t.Helper()
	store, err := Open(t.Context(), Options{Location: s.Location(s.URL), Base: "http://x/media", Retention: time.Hour,
		Lookup: os.LookupEnv, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil {
		t.Cleanup(store.Close)
	}
	return store, err
}

// TestBucketKeysOfEachSource opens a bucket with the credentials of each source of AWS's
// chain.
func TestBucketKeysOfEachSource(t *testing.T) {
	s := s3server.Start(t)
	a := fakecloud.NewAWSKeys(t, s3server.Access, s3server.Secret)
	token := file(t, a.Token)
	process := file(t, fmt.Sprintf("#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"%s\"}'\n",
		s3server.Access, s3server.Secret))
	for _, c := range []struct {
		name      string
		variables map[string]string
		protocols string // protocol, or empty if the server must not be asked
	}{
		{"variables", map[string]string{"AWS_ACCESS_KEY_ID": s3server.Access, "AWS_SECRET_ACCESS_KEY": s3server.Secret}, ""},
		{"shared credentials", map[string]string{
			"AWS_SHARED_CREDENTIALS_FILE": file(t, sharedKeys("default", s3server.Access, s3server.Secret))}, ""},
		{"a profile", map[string]string{"AWS_PROFILE": "media",
			"AWS_SHARED_CREDENTIALS_FILE": file(t, sharedKeys("default", "wrong", "wrong")+
				sharedKeys("media", s3server.Access, s3server.Secret))}, ""},
		{"the config file", map[string]string{"AWS_CONFIG_FILE": file(t, sharedKeys("default", s3server.Access, s3server.Secret))}, ""},
		{"a process", map[string]string{"AWS_CONFIG_FILE": file(t, "[default]\ncredential_process = "+process+"\n")}, ""},
		{"a role of a profile", map[string]string{"AWS_PROFILE": "media", "AWS_ENDPOINT_URL_STS": a.URL,
			"AWS_SHARED_CREDENTIALS_FILE": file(t, sharedKeys("base", "other", "other")),
			"AWS_CONFIG_FILE":             file(t, "[profile media]\nrole_arn = "+a.Role+"\nsource_profile = base\n")}, "AssumeRole"},
		{"a web identity", map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": a.Role, "AWS_ENDPOINT_URL_STS": a.URL},
			"AssumeRoleWithWebIdentity"},
		{"a task of ECS", map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": a.URL + "/container",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN": a.Token}, "container"},
		{"a pod of EKS", map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": a.URL + "/container",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token}, "container"},
		{"an instance", map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": a.URL}, "instance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.variables)
			before := len(a.Protocols())
			if _, err := openBucketStore(t, s, &strings.Builder{}); err != nil { // writes and deletes a file
				t.Fatal(err)
			}
			if protocols := a.Protocols()[before:]; strings.Join(protocols, " ") != c.protocols {
				t.Errorf("credentials were fetched with %q; want %q once", protocols, c.protocols)
			}
		})
	}
}

// TestBucketWithoutKeys checks the messages for missing keys. The error of a named source may be
// temporary, so the start waits.
func TestBucketWithoutKeys(t *testing.T) {
	s := s3server.Start(t)
	a := fakecloud.NewAWSKeys(t, s3server.Access, s3server.Secret)
	a.Refuse(true)
	for _, c := range []struct {
		name, wantText string
		variables      map[string]string
	}{
		{"nothing", "AWS_ACCESS_KEY_ID", nil},
		{"half a pair", "AWS_ACCESS_KEY_ID", map[string]string{"AWS_ACCESS_KEY_ID": s3server.Access}},
		{"an unknown profile", "nobody", map[string]string{"AWS_PROFILE": "nobody"}},
		{"a container that is away", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": a.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": a.Token}},
		{"a container with another token", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": a.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "x"}},
		{"no file of the web identity", "AWS_WEB_IDENTITY_TOKEN_FILE",
			map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ROLE_ARN": a.Role, "AWS_ENDPOINT_URL_STS": a.URL}},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.variables)
			if _, err := openBucketStore(t, s, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("got %v; want %q", err, c.wantText)
			}
		})
	}
}

// TestBucketKeysAreRenewed fetches credentials again before they expire, and continues with
// the old ones while none can be fetched.
func TestBucketKeysAreRenewed(t *testing.T) {
	s := s3server.Start(t)
	a := fakecloud.NewAWSKeys(t, s3server.Access, s3server.Secret)
	a.Give(s3server.Access, s3server.Secret, keysEarly-time.Minute)
	environment(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": a.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": a.Token})
	store, err := openBucketStore(t, s, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	b := store.backend.(*monitor).backend.(*bucket)
	before := len(a.Protocols())
	a.Give(s3server.Access, s3server.Secret, time.Hour)
	if err := b.check(t.Context()); err != nil || len(a.Protocols()) != before+1 {
		t.Errorf("%v, fetched %d times; want once", err, len(a.Protocols())-before)
	}
	a.Refuse(true)
	if err := b.check(t.Context()); err != nil || len(a.Protocols()) != before+1 {
		t.Errorf("%v, fetched %d times; want none while the credentials are valid for an hour", err, len(a.Protocols())-before-1)
	}
	a.Refuse(false)
	a.Give(s3server.Access, s3server.Secret, keysEarly-time.Minute)
	store.Reread(t.Context())
	a.Refuse(true)
	if err := b.check(t.Context()); err != nil {
		t.Errorf("valid credentials are not used while no new ones can be fetched: %v", err)
	}
	b.keys.now = func() time.Time { return time.Now().Add(keysEarly) }
	if err := b.check(t.Context()); err == nil {
		t.Error("expired credentials are used")
	}
	a.Refuse(false)
	if err := b.check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBucketKeysAreReread changes the credentials file of an open store.
func TestBucketKeysAreReread(t *testing.T) {
	s := s3server.Start(t)
	path := file(t, sharedKeys("default", s3server.Access, s3server.Secret))
	environment(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": path})
	var log strings.Builder
	store, err := openBucketStore(t, s, &log)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		works      bool
		wantText   string
	}{
		{"the old keys are withdrawn", sharedKeys("default", "other", "other"), false, "were read again"},
		{"the new keys", sharedKeys("default", s3server.Access, s3server.Secret), true, "were read again"},
		{"half a file", "[default]\naws_access_key_id = x\n", true, "the old ones stay"},
		{"an empty file", "", true, "the old ones stay"},
		{"no text of such a file", "{}", true, "the old ones stay"},
		{"the same keys", sharedKeys("default", s3server.Access, s3server.Secret), true, "were read again"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		store.Reread(t.Context())
		if err := store.backend.check(t.Context()); (err == nil) != c.works || !strings.Contains(log.String(), c.wantText) {
			t.Errorf("%s: %v, log %q", c.name, err, log.String())
		}
		if strings.Contains(log.String(), s3server.Secret) {
			t.Errorf("%s: the log contains the secret", c.name)
		}
	}
}
