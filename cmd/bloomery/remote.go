package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bloomery/bloom/internal/lines"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
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
	cuckoo bool // it is, or will be, one of the CF commands; otherwise of the BF commands
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

// family is what the names of the filter's commands begin with.
func (f *remoteFilter) family() string {
	if f.cuckoo {
		return "CF"
	}
	return "BF"
}

// typeOf returns the type of a value: "none" if there is none.
func (f *remoteFilter) typeOf(ctx context.Context) (string, error) {
	kind, err := f.do(ctx, "TYPE", f.name).ToString()
	return kind, f.explain(err)
}

// cuckooType is the type of RedisBloom's cuckoo filters.
const cuckooType = "MBbloomCF"

// scanDump requests a chunk of the filter. The caller owns the chunk, which is nil at the end.
func (f *remoteFilter) scanDump(ctx context.Context, iterator int64) (next int64, chunk []byte, err error) {
	command := f.family() + ".SCANDUMP"
	reply, err := f.do(ctx, command, f.name, strconv.FormatInt(iterator, 10)).ToArray()
	if err != nil {
		return 0, nil, f.explain(err)
	}
	if len(reply) != 2 {
		return 0, nil, fmt.Errorf("%s: the server answers %s with %d values instead of 2: does it run RedisBloom?", f.url, command, len(reply))
	}
	if next, err = reply[0].AsInt64(); err == nil && !reply[1].IsNil() { // the CF command ends with nil
		chunk, err = reply[1].AsBytes()
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: the answer to %s is not an iterator and bytes: %w", f.url, command, err)
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
