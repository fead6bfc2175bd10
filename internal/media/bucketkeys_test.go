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

// setEnvironment sets the given variables and empties all other AWS variables. The test must not be
// parallel, because of t.Setenv.
func setEnvironment(t *testing.T, variables map[string]string) {
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

// writeFile writes a file for the test and returns its path.
func writeFile(t *testing.T, text string) string {
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

// openBucketStore opens a store on the server's bucket with credentials from the environment.
func openBucketStore(t *testing.T, s *s3server.Server, log *strings.Builder) (*Store, error) {
	t.Helper()
	store, err := Open(t.Context(), Options{Location: s.Location(s.URL), Base: "http://x/media", Retention: time.Hour,
		Lookup: os.LookupEnv, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil {
		t.Cleanup(store.Close)
	}
	return store, err
}

// TestBucketKeysOfEachSource checks that a bucket opens with credentials from each source of AWS's
// chain, after at most one request for them.
func TestBucketKeysOfEachSource(t *testing.T) {
	s := s3server.Start(t)
	cloud := fakecloud.NewAWSKeys(t, s3server.Access, s3server.Secret)
	token := writeFile(t, cloud.Token)
	process := writeFile(t, fmt.Sprintf("#!/bin/sh\necho '{\"Version\":1,\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"%s\"}'\n",
		s3server.Access, s3server.Secret))
	for _, c := range []struct {
		name      string
		variables map[string]string
		protocols string // the server's protocol, or empty if the server must not be asked
	}{
		{"variables", map[string]string{"AWS_ACCESS_KEY_ID": s3server.Access, "AWS_SECRET_ACCESS_KEY": s3server.Secret}, ""},
		{"shared credentials", map[string]string{
			"AWS_SHARED_CREDENTIALS_FILE": writeFile(t, sharedKeys("default", s3server.Access, s3server.Secret))}, ""},
		{"a profile", map[string]string{"AWS_PROFILE": "media",
			"AWS_SHARED_CREDENTIALS_FILE": writeFile(t, sharedKeys("default", "wrong", "wrong")+
				sharedKeys("media", s3server.Access, s3server.Secret))}, ""},
		{"the config file", map[string]string{"AWS_CONFIG_FILE": writeFile(t, sharedKeys("default", s3server.Access, s3server.Secret))}, ""},
		{"a process", map[string]string{"AWS_CONFIG_FILE": writeFile(t, "[default]\ncredential_process = "+process+"\n")}, ""},
		{"a role of a profile", map[string]string{"AWS_PROFILE": "media", "AWS_ENDPOINT_URL_STS": cloud.URL,
			"AWS_SHARED_CREDENTIALS_FILE": writeFile(t, sharedKeys("base", "other", "other")),
			"AWS_CONFIG_FILE":             writeFile(t, "[profile media]\nrole_arn = "+cloud.Role+"\nsource_profile = base\n")}, "AssumeRole"},
		{"a web identity", map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": cloud.Role, "AWS_ENDPOINT_URL_STS": cloud.URL},
			"AssumeRoleWithWebIdentity"},
		{"a task of ECS", map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": cloud.URL + "/container",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN": cloud.Token}, "container"},
		{"a pod of EKS", map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": cloud.URL + "/container",
			"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token}, "container"},
		{"an instance", map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": cloud.URL}, "instance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			setEnvironment(t, c.variables)
			before := len(cloud.Protocols())
			if _, err := openBucketStore(t, s, &strings.Builder{}); err != nil { // writes and deletes a file
				t.Fatal(err)
			}
			if protocols := cloud.Protocols()[before:]; strings.Join(protocols, " ") != c.protocols {
				t.Errorf("credentials were fetched with %q; want %q once", protocols, c.protocols)
			}
		})
	}
}

// TestBucketWithoutKeys checks that the error for missing keys names the source.
func TestBucketWithoutKeys(t *testing.T) {
	s := s3server.Start(t)
	cloud := fakecloud.NewAWSKeys(t, s3server.Access, s3server.Secret)
	cloud.Refuse(true)
	for _, c := range []struct {
		name, wantText string
		variables      map[string]string
	}{
		{"no variables", "AWS_ACCESS_KEY_ID", nil},
		{"no secret", "AWS_ACCESS_KEY_ID", map[string]string{"AWS_ACCESS_KEY_ID": s3server.Access}},
		{"an unknown profile", "nobody", map[string]string{"AWS_PROFILE": "nobody"}},
		{"a container that refuses", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": cloud.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": cloud.Token}},
		{"a container with another token", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
			map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": cloud.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "x"}},
		{"no file of the web identity", "AWS_WEB_IDENTITY_TOKEN_FILE",
			map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ROLE_ARN": cloud.Role, "AWS_ENDPOINT_URL_STS": cloud.URL}},
	} {
		t.Run(c.name, func(t *testing.T) {
			setEnvironment(t, c.variables)
			if _, err := openBucketStore(t, s, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("got %v; want %q", err, c.wantText)
			}
		})
	}
}

// TestBucketKeysAreRenewed checks that credentials are fetched again before they expire. The old
// credentials are used until then if no new ones can be fetched.
func TestBucketKeysAreRenewed(t *testing.T) {
	s := s3server.Start(t)
	cloud := fakecloud.NewAWSKeys(t, s3server.Access, s3server.Secret)
	cloud.Give(s3server.Access, s3server.Secret, keysExpiryWindow-time.Minute)
	setEnvironment(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": cloud.URL + "/container",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN": cloud.Token})
	store, err := openBucketStore(t, s, &strings.Builder{})
	if err != nil {
		t.Fatal(err)
	}
	b := store.backend.(*monitor).backend.(*bucket)
	before := len(cloud.Protocols())
	cloud.Give(s3server.Access, s3server.Secret, time.Hour)
	if err := b.check(t.Context()); err != nil || len(cloud.Protocols()) != before+1 {
		t.Errorf("%v, fetched %d times; want once", err, len(cloud.Protocols())-before)
	}
	cloud.Refuse(true)
	if err := b.check(t.Context()); err != nil || len(cloud.Protocols()) != before+1 {
		t.Errorf("%v, fetched %d times; want none while the credentials are valid for an hour", err, len(cloud.Protocols())-before-1)
	}
	cloud.Refuse(false)
	cloud.Give(s3server.Access, s3server.Secret, keysExpiryWindow-time.Minute)
	store.Reread(t.Context())
	cloud.Refuse(true)
	if err := b.check(t.Context()); err != nil {
		t.Errorf("check failed although the old credentials are still valid: %v", err)
	}
	b.keys.now = func() time.Time { return time.Now().Add(keysExpiryWindow) }
	if err := b.check(t.Context()); err == nil {
		t.Error("check succeeded with expired credentials")
	}
	cloud.Refuse(false)
	if err := b.check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBucketKeysAreReread checks that Reread applies a changed credentials file, and keeps the old
// credentials if the file is invalid.
func TestBucketKeysAreReread(t *testing.T) {
	s := s3server.Start(t)
	path := writeFile(t, sharedKeys("default", s3server.Access, s3server.Secret))
	setEnvironment(t, map[string]string{"AWS_SHARED_CREDENTIALS_FILE": path})
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
		{"JSON", "{}", true, "the old ones stay"},
		{"the same keys", sharedKeys("default", s3server.Access, s3server.Secret), true, "were read again"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		store.Reread(t.Context())
		if err := store.backend.check(t.Context()); (err == nil) != c.works || !strings.Contains(log.String(), c.wantText) {
			t.Errorf("%s: check failed with %v, log %q; want success %t, log %q", c.name, err, log.String(), c.works, c.wantText)
		}
		if strings.Contains(log.String(), s3server.Secret) {
			t.Errorf("%s: the log contains the secret", c.name)
		}
	}
}
