package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bloomery/bloom/internal/redistest"
)

// writeCertificate writes a certificate of this machine that is its own authority.
func writeCertificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeFile(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return cert, key
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestServeStoreTLS serves, and checks, filters in a Redis that wants TLS and a password.
func TestServeStoreTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	redis := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	if out, err := redis.CLI(t.Context(), "CONFIG", "SET", "requirepass", "sesame"); err != nil {
		t.Fatal(out, err)
	}
	url := "rediss://127.0.0.1:" + port
	password := filepath.Join(dir, "password")
	writeFile(t, password, "sesame\n")
	wrong := filepath.Join(dir, "wrong")
	writeFile(t, wrong, "open\n")
	none := filepath.Join(dir, "none.pem")
	writeFile(t, none, "none\n")
	refused(t, "certificate", "fsck", "--store-password-file", password, url)
	refused(t, "no certificate in PEM format", "fsck", "--store-ca", none, url)
	refused(t, "WRONGPASS", "fsck", "--store-ca", cert, "--store-password-file", wrong, url)
	refused(t, "NOAUTH", "fsck", "--store-ca", cert, url)

	s := serveUntil(t, socketPath(t), "--http", "off", "--store", url, "--store-ca", cert, "--store-password-file", password)
	for words, want := range map[string]string{"BF.RESERVE seen 0.01 1000": "+OK\r\n", "BF.ADD other a": ":1\r\n"} {
		if got := s.say(t, words); got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
	metrics := filepath.Join(dir, "fsck.prom")
	fsck := []string{"fsck", "--store-ca", cert, "--store-password-file", password, "--metrics", metrics, url}
	if said := must(t, fsck...); !strings.Contains(said, "2 filters, ") {
		t.Error(said)
	}
	written := func(wants ...string) {
		t.Helper()
		got, err := os.ReadFile(metrics)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(got), "\n"+want+"\n") {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
	written("bloomery_fsck_filters 2", `bloomery_fsck_problems{kind="gone"} 0`, `bloomery_fsck_problems{kind="orphan"} 0`)
	keys, err := redis.CLI(t.Context(), "-a", "sesame", "--no-auth-warning", "--scan", "--pattern", "bloomery:b:*")
	if err != nil {
		t.Fatal(keys, err)
	}
	if out, err := redis.CLI(t.Context(), "-a", "sesame", "--no-auth-warning", "DEL", strings.Fields(keys)[0]); err != nil {
		t.Fatal(out, err)
	}
	if stdout, stderr, code := command(t, fsck...); code != exitError || !strings.Contains(stdout, "is gone") || !strings.Contains(stderr, "1 problem") {
		t.Error(code, stdout, stderr)
	}
	written(`bloomery_fsck_problems{kind="gone"} 1`)
	refused(t, "no such", "fsck", "--store-ca", cert, "--store-password-file", password, "--metrics", filepath.Join(dir, "no", "dir"), url)
	s.shutdown(t)
}

// TestServeStoreSentinel serves filters in the master that Sentinel names.
func TestServeStoreSentinel(t *testing.T) {
	sentinels, servers := redistest.Sentinels(t, 1)
	url := "redis://" + sentinels[0].Address + "?master_set=mymaster"
	s := serveUntil(t, socketPath(t), "--http", "off", "--store", url+","+"redis://"+sentinels[1].Address)
	if got := s.say(t, "BF.ADD seen a"); got != ":1\r\n" {
		t.Error(got)
	}
	servers[0].WaitFor(t, "bloomery:", "--scan")
	must(t, "fsck", url)
	s.shutdown(t)
}
