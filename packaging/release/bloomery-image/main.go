// Bloomery-image writes a container image that holds the program and nothing else, as a file
// for `docker load` and `podman load`. packaging/Dockerfile builds the same image
// from source; this needs neither Docker nor a registry, and the same program gives
// the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number of the user that the server runs as, and that owns /data.
const user = 65532

func main() {
	var (
		goos    = flag.String("os", "linux", "operating `system` of the program; nothing is written unless it is linux")
		arch    = flag.String("arch", "amd64", "`architecture` of the program")
		binary  = flag.String("binary", "", "the program's `file`")
		seconds = flag.Int64("time", 0, "time of everything in the image, in `seconds` since 1970")
		tag     = flag.String("name", "bloomery:latest", "`name` of the image")
		output  = flag.String("o", "", "`file` to write")
	)
	flag.Parse()
	if *goos != "linux" {
		return
	}
	if err := write(*output, *tag, *arch, *binary, time.Unix(*seconds, 0).UTC()); err != nil {
		fmt.Fprintln(os.Stderr, "bloomery-image:", err)
		os.Exit(1)
	}
}

func write(output, tag, arch, binary string, when time.Time) error {
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	files, err := layer(binary, when)
	if err != nil {
		return err
	}
	opened := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	added, err := tarball.LayerFromOpener(opened)
	if err != nil {
		return err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   added,
		History: v1.History{Created: v1.Time{Time: when}, CreatedBy: "make release"},
	})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: when}
	// The same as in packaging/Dockerfile, which explains it.
	config.Config = v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"6380/tcp": {}, "6381/tcp": {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:        []string{"CMD", "/bloomery", "probe"},
			Interval:    10 * time.Second,
			Timeout:     6 * time.Second,
			StartPeriod: 10 * time.Minute,
		},
		Entrypoint: []string{"/bloomery"},
		Cmd:        []string{"serve", "--data", "/data", "--listen", ":6380", "--http", ":6381", "--password-file", "/run/secrets/password"},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	return tarball.WriteToFile(output, ref, image)
}

// layer is the image's file system as a tar archive: the program, the certificate
// authorities that Mozilla trusts, for `bloomery push` and `pull` by TLS, and /data.
func layer(binary string, when time.Time) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // trusted for some names only, which a PEM file cannot say
		}
		if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	dir := func(name string, mode int64, owner int) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: when})
	}
	file := func(name string, mode int64, content []byte) error {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: when})
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	}
	err = errors.Join(
		file("bloomery", 0o755, program),
		dir("data/", 0o755, user),
		dir("etc/", 0o755, 0),
		dir("etc/ssl/", 0o755, 0),
		dir("etc/ssl/certs/", 0o755, 0),
		file("etc/ssl/certs/ca-certificates.crt", 0o644, authorities.Bytes()),
		w.Close(),
	)
	return files.Bytes(), err
}
