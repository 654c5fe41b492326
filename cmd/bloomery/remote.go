package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
	"github.com/zeebo/xxh3"
)

// A filter on a server: its address, and the commands that push and pull need.
// The server may be ours or any with RedisBloom.

// passwordVariable is the environment variable for a password that should not be in
// the URL, where others can read it. redis-cli uses the same one.
const passwordVariable = "REDISCLI_AUTH"

// readOnlyUser is the user of 'bloomery serve' that may only read.
const readOnlyUser = "readonly"

const (
	standardPort = "6379" // of the schemes redis and rediss
	dialTime     = 5 * time.Second
	quietTime    = time.Minute // a server that receives and sends nothing for this long is gone
)

// remoteFilter is a name on a server.
type remoteFilter struct {
	name   string
	url    string // without the password, for messages
	tls    bool
	client rueidis.Client
}

// remoteFlags are the flags that push and pull share.
type remoteFlags struct{ ca string }

func (r *remoteFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.ca, "ca", "", "with rediss://: trust the certificates in `FILE` (PEM) instead of the system's")
}

// isRemote reports whether an argument is meant as an address, not as a file.
func isRemote(arg string) bool { return strings.Contains(arg, "://") }

// parseRemote parses an address: redis://[USER[:PASSWORD]@]HOST[:PORT]/NAME. The name
// is what follows the slash, percent-encoded where necessary.
func parseRemote(arg string) (options rueidis.ClientOption, name string, err error) {
	const form = "redis://[USER:PASSWORD@]HOST[:PORT]/NAME"
	u, err := url.Parse(arg)
	if err != nil {
		// The error of url.Parse quotes the address, and so the password.
		return options, "", usagef("the address cannot be read: it must be %s, with %%XX for special characters", form)
	}
	switch u.Scheme {
	case "redis":
	case "unix":
		return parseSocket(u)
	case "rediss":
		options.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	default:
		return options, "", usagef("%s is not a server address: give %s, rediss:// for TLS, or unix:///PATH/NAME for a socket", u.Redacted(), form)
	}
	name, err = url.PathUnescape(strings.TrimPrefix(u.EscapedPath(), "/"))
	switch {
	case u.Hostname() == "":
		return options, "", usagef("%s names no host: give %s", u.Redacted(), form)
	case err != nil || name == "":
		return options, "", usagef("%s names no filter: give %s", u.Redacted(), form)
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return options, "", usagef("%s: write a ? or # in the name as %%3F or %%23", u.Redacted())
	}
	port := u.Port()
	if port == "" {
		port = standardPort
	}
	options.InitAddress = []string{net.JoinHostPort(u.Hostname(), port)}
	setUser(&options, u)
	return options, name, nil
}

// parseSocket parses the address of a Unix socket:
// unix://[USER:PASSWORD@]/PATH/NAME, where a slash in the name is written %2F.
func parseSocket(u *url.URL) (options rueidis.ClientOption, name string, err error) {
	escaped := u.EscapedPath()
	last := max(strings.LastIndex(escaped, "/"), 0)
	path, err := url.PathUnescape(escaped[:last])
	if err == nil {
		name, err = url.PathUnescape(strings.TrimPrefix(escaped[last:], "/"))
	}
	if err != nil || u.Host != "" || path == "" || name == "" || u.RawQuery != "" || u.Fragment != "" {
		return options, "", usagef("%s: the address of a socket is unix:///PATH/NAME, as in unix:///run/bloomery.sock/seen", u.Redacted())
	}
	options.InitAddress = []string{path}
	options.DialCtxFn = func(ctx context.Context, path string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", path)
	}
	setUser(&options, u)
	return options, name, nil
}

// setUser sets the user, and the password, which may come from the environment.
func setUser(options *rueidis.ClientOption, u *url.URL) {
	options.Username = u.User.Username()
	if password, ok := u.User.Password(); ok {
		options.Password = password
	} else {
		options.Password = os.Getenv(passwordVariable)
	}
}

// connect reaches the server of an address.
func (r *remoteFlags) connect(arg string) (*remoteFilter, error) {
	options, name, err := parseRemote(arg)
	if err != nil {
		return nil, err
	}
	if err := trust(&options, "--ca", r.ca); err != nil {
		return nil, err
	}
	options.DisableCache = true
	options.PipelineMultiplex = -1 // one connection, on which commands keep their order
	options.DisableRetry = true    // a chunk sent twice must be noticed
	options.ClientName = "bloomery"
	options.Dialer = net.Dialer{Timeout: dialTime}
	options.ConnWriteTimeout = quietTime
	u, _ := url.Parse(arg) // parseRemote could
	f := &remoteFilter{name: name, url: u.Redacted(), tls: options.TLSConfig != nil}
	f.client, err = rueidis.NewClient(options)
	if err != nil && options.Username == "" && strings.HasPrefix(err.Error(), "WRONGPASS") {
		// A password without a user may be the read-only password of 'bloomery
		// serve', which AUTH accepts, but not the AUTH of HELLO, which names a user.
		options.Username = readOnlyUser
		if other, err2 := rueidis.NewClient(options); err2 == nil {
			f.client, err = other, nil
		}
	}
	if err != nil {
		return nil, f.explain(err)
	}
	return f, nil
}

// trust makes the certificates in a file, if one is given, those that are trusted.
func trust(options *rueidis.ClientOption, flag, file string) error {
	if file == "" {
		return nil
	}
	if options.TLSConfig == nil {
		return usagef("%s is for rediss:// addresses: leave it out, or write rediss://", flag)
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return lines.FileError(file, err)
	}
	options.TLSConfig.RootCAs = x509.NewCertPool()
	if !options.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: holds no certificate in PEM format", file)
	}
	return nil
}

func (f *remoteFilter) Close() { f.client.Close() }

// do sends a command. The first argument after its name is a key.
func (f *remoteFilter) do(ctx context.Context, command, key string, args ...string) rueidis.RedisResult {
	return f.client.Do(ctx, f.command(command, key, args...))
}

func (f *remoteFilter) command(command, key string, args ...string) rueidis.Completed {
	return f.client.B().Arbitrary(strings.Fields(command)...).Keys(key).Args(args...).Build()
}

// scanDump requests a chunk of the filter. The caller owns the chunk.
func (f *remoteFilter) scanDump(ctx context.Context, iterator int64) (next int64, chunk []byte, err error) {
	reply, err := f.do(ctx, "BF.SCANDUMP", f.name, strconv.FormatInt(iterator, 10)).ToArray()
	if err != nil {
		return 0, nil, f.explain(err)
	}
	if len(reply) != 2 {
		return 0, nil, fmt.Errorf("%s: the server answers BF.SCANDUMP with %d values instead of 2: does it run RedisBloom?", f.url, len(reply))
	}
	if next, err = reply[0].AsInt64(); err == nil {
		chunk, err = reply[1].AsBytes()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: the answer to BF.SCANDUMP is not an iterator and bytes: %w", f.url, err)
	}
	return next, chunk, nil
}

// beside is a name, on the same node of a cluster, for the filter while it is
// incomplete: that of a dump with an identity, or a new one.
func (f *remoteFilter) beside(identity string) string {
	name := f.name
	if !strings.Contains(name, "}") { // otherwise it may name its slot itself
		name = "{" + name + "}"
	}
	if identity == "" {
		identity = fmt.Sprintf("%016x", rand.Uint64())
	}
	return name + ".push." + identity
}

// explain adds advice to an error of the server or of the connection.
func (f *remoteFilter) explain(err error) error {
	if err == nil {
		return nil
	}
	advice := ""
	text := err.Error()
	var dial *net.OpError
	var unknown x509.UnknownAuthorityError
	switch {
	case strings.HasPrefix(text, "NOAUTH"):
		advice = "give the password in the address, as in redis://:PASSWORD@HOST, or in the variable " + passwordVariable
	case strings.HasPrefix(text, "NOPERM"):
		advice = "give the password of a user with that permission"
	case strings.HasPrefix(text, "WRONGPASS") || strings.Contains(text, "without any password configured"):
		advice = "check the password in the address, or in the variable " + passwordVariable
	case strings.HasPrefix(text, "WRONGTYPE"):
		advice = "the name holds another kind of value: give the name of a filter"
	case strings.HasPrefix(text, "OOM"):
		advice = "it needs more memory than the server may use"
	case strings.Contains(strings.ToLower(text), "unknown command"):
		advice = "the server has no RedisBloom: use one that has, or 'bloomery serve'"
	case text == "not found" || strings.HasPrefix(text, "ERR not found"):
		return fmt.Errorf("%s: there is no filter of that name", f.url)
	case errors.As(err, &unknown):
		advice = "give the certificate of its authority with --ca"
	case errors.As(err, &dial) && dial.Op == "dial":
		advice = "is a server running there? 'bloomery serve' starts one, on port 6380"
	case !f.tls && (errors.Is(err, io.EOF) || text == "EOF" || errors.Is(err, syscall.ECONNRESET)):
		advice = "does the server use TLS there? then write rediss://"
	case strings.Contains(text, "first record does not look like a TLS handshake"):
		advice = "the server does not use TLS there: write redis://"
	}
	if advice == "" {
		return fmt.Errorf("%s: %w", f.url, err)
	}
	return fmt.Errorf("%s: %w: %s", f.url, err, advice)
}

// untilInterrupted is a context that Ctrl-C or SIGTERM cancels, so that what was
// begun on a server can be undone.
func untilInterrupted(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// A dump is a filter in the chunks that BF.LOADCHUNK takes.
type dump struct {
	kind     string
	bytes    int64                   // of all chunks, if known
	chunks   iter.Seq2[chunk, error] // once
	close    func() error            // before the filter is closed
	identity string                  // of its file, for push --resume; empty for RedisBloom's

	begun  bool  // an earlier push has loaded the header
	loaded int64 // and this much of the file
}

// chunk is a part of a dump, with the iterator for loading it.
type chunk struct {
	iterator int64
	data     []byte
}

// largestChunk is the size of the chunks in RedisBloom's own dumps.
const largestChunk = 16 << 20

// dumpOf returns the dump of a filter, if servers have its kind.
func dumpOf(f *anyfile.File) (*dump, error) {
	if chain, ok, err := chainIn(f); ok || err != nil {
		return dumpOfChain(chain), err
	}
	switch f.Filter.(type) {
	case *bloom.Filter, *bloom.Scalable, *bloom.Window:
		return dumpOfOurs(f)
	}
	const servers = "a server can take RedisBloom filters and our filter, scalable and window kinds"
	if _, ok := f.Filter.(*bloom.Counting); ok {
		return nil, fmt.Errorf("%s: is a counting filter, and %s: turn it into a filter with 'bloomery convert --to bloomery'", f.Path, servers)
	}
	return nil, fmt.Errorf("%s: is a %s, and %s: build one from its keys", f.Path, f.Kind(), servers)
}

// chainIn returns the filter as RedisBloom's, if its bits are of that kind.
func chainIn(f *anyfile.File) (chain *redisbloom.Filter, ok bool, err error) {
	switch filter := f.Filter.(type) {
	case *anyfile.Chain:
		return filter.Filter, true, nil
	case *classic.Filter:
		if filter.Scheme() == classic.SchemeRedisBloom {
			chain, err = redisbloom.From(filter)
			return chain, true, err
		}
	}
	return nil, false, nil
}

func dumpOfChain(chain *redisbloom.Filter) *dump {
	if chain == nil {
		return nil
	}
	d := &dump{kind: "redisbloom", bytes: int64(len(chain.Header())), close: func() error { return nil }}
	for _, l := range chain.Layers() {
		d.bytes += int64(l.Bytes)
	}
	d.chunks = func(yield func(chunk, error) bool) {
		for next, data := chain.ScanDump(0); next != 0 && yield(chunk{next, data}, nil); {
			next, data = chain.ScanDump(next)
		}
	}
	return d
}

// dumpOfOurs is a header followed by the file that the filter would be saved as;
// docs/format.md draws both.
func dumpOfOurs(f *anyfile.File) (*dump, error) {
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(f.Encode(w))
	}()
	// The file may be mapped: it must not be closed while it is read.
	end := func() error {
		r.Close()
		<-written
		return nil
	}
	head := make([]byte, fileHeadBytes)
	if _, err := io.ReadFull(r, head); err != nil {
		end()
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	header := dumpHeaderOf(head)
	d := &dump{kind: f.Kind(), bytes: int64(len(header)) + header.fileBytes(), close: end,
		identity: fmt.Sprintf("%016x", xxh3.Hash(slices.Concat(header, head)))}
	d.chunks = func(yield func(chunk, error) bool) {
		if !yield(chunk{1, header}, nil) {
			return
		}
		file, at := io.MultiReader(bytes.NewReader(head), r), int64(1)
		for {
			data := make([]byte, largestChunk)
			n, err := io.ReadFull(file, data)
			if err == io.EOF {
				return
			}
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				yield(chunk{}, fmt.Errorf("%s: %w", f.Path, err))
				return
			}
			at += int64(n)
			if !yield(chunk{at, data[:n]}, nil) {
				return
			}
		}
	}
	return d, nil
}

// dumpHeader is the first chunk of a dump.
type dumpHeader []byte

// The header of RedisBloom's dumps is 20 bytes and 53 for each layer, which begin
// with the layer's bytes; see package interop. For our own see store.DumpHeader.
const (
	chainHeadBytes  = 20
	chainLayerBytes = 53
)

// What the header says is repeated in the head of the file, its first three pages.
const (
	fileHeadBytes = 3 * 4096
	fileKindAt    = 10
	fileHashAt    = 16 // a u32
	fileHashKeyAt = 24
	fileKeysAt    = 32
	fileRateAt    = 40
	fileGrowthAt  = 48
	fileSpanAt    = 56
	fileAddedAt   = 4096 + 16
	fileBytesAt   = 4096 + 32
)

func dumpHeaderOf(head []byte) dumpHeader {
	order := binary.LittleEndian
	h := store.DumpHeader{
		Spec: store.Spec{
			Kind:     store.Paired,
			Public:   bloom.HashAlgorithm(order.Uint32(head[fileHashAt:])) == bloom.XXH3,
			Capacity: order.Uint64(head[fileKeysAt:]),
			Rate:     math.Float64frombits(order.Uint64(head[fileRateAt:])),
		},
		Key:   order.Uint64(head[fileHashKeyAt:]),
		Items: order.Uint64(head[fileAddedAt:]),
		Bytes: order.Uint64(head[fileBytesAt:]),
	}
	switch bloom.Kind(order.Uint16(head[fileKindAt:])) {
	case bloom.KindScalable:
		h.Spec.Growth = order.Uint32(head[fileGrowthAt:])
	case bloom.KindWindow:
		h.Spec.Kind, h.Spec.Span = store.Window, time.Duration(order.Uint64(head[fileSpanAt:]))
		h.Spec.Growth = 2 // in a file it always grows
	}
	return h.Encode()
}

func (h dumpHeader) redisBloom() bool {
	return len(h) >= chainHeadBytes+chainLayerBytes &&
		uint64(len(h)) == chainHeadBytes+chainLayerBytes*uint64(binary.LittleEndian.Uint32(h[8:]))
}

// check refuses a header that no server can have made. The error wraps
// [bloom.ErrFormat], [bloom.ErrVersion], [bloom.ErrLimit] or [bloom.ErrChecksum].
func (h dumpHeader) check() error {
	if store.IsDumpHeader(h) {
		ours, err := store.ParseDumpHeader(h)
		if err == nil && (ours.Bytes < fileHeadBytes || ours.Bytes > math.MaxInt64) {
			err = fmt.Errorf("%w: a file of %d bytes", bloom.ErrFormat, ours.Bytes)
		}
		return err
	}
	// Room is asked for only after everything else has been checked.
	room := errors.New("asked for room")
	_, err := redisbloom.LoadHeader(h, func(uint64) error { return room })
	if errors.Is(err, room) {
		return nil
	}
	return err
}

// fileBytes is the size of the file, according to the header.
func (h dumpHeader) fileBytes() int64 {
	if ours, err := store.ParseDumpHeader(h); err == nil {
		return int64(ours.Bytes)
	}
	if !h.redisBloom() {
		return 0
	}
	sum := uint64(len(h))
	for layer := h[chainHeadBytes:]; len(layer) > 0; layer = layer[chainLayerBytes:] {
		sum += binary.LittleEndian.Uint64(layer)
	}
	return int64(sum)
}

// grewTo reports whether a later RedisBloom header can be of the same filter, which
// may have gained keys and layers since.
func (h dumpHeader) grewTo(later dumpHeader) bool {
	if len(later) < len(h) || !bytes.Equal(h[12:chainHeadBytes], later[12:chainHeadBytes]) {
		return false
	}
	for at := chainHeadBytes; at < len(h); at += chainLayerBytes {
		was, is := h[at:at+chainLayerBytes], later[at:at+chainLayerBytes]
		if !bytes.Equal(was[:16], is[:16]) || !bytes.Equal(was[24:], is[24:]) { // all but the items
			return false
		}
	}
	return true
}
