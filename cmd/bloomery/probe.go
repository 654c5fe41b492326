package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/bloomery/bloom/internal/human"
	"github.com/spf13/cobra"
)

// probeCommand is `bloomery probe`.
type probeCommand struct {
	insecure bool
	either   bool // try TLS if http:// is answered by 400 Bad Request
	timeout  human.TimeFlag
	wait     human.TimeFlag
}

// probeURL is where 'bloomery serve' reports whether it is ready, by default.
const probeURL = "http://127.0.0.1:6381/readyz"

// askEvery is the pause between two answers of --wait.
const askEvery = 50 * time.Millisecond

func newProbe() *cobra.Command {
	c := &probeCommand{timeout: human.TimeFlag(5 * time.Second)}
	cmd := &cobra.Command{
		Use:   "probe [URL]",
		Short: "Check whether a server is ready",
		Long: `Probe asks 'bloomery serve' over HTTP whether it is ready, that is, whether it
acknowledges adds. It is meant for health checks in containers that have no other
HTTP client. Without a URL it asks ` + probeURL + `, or the same
with https:// if the server uses TLS, and then accepts any certificate.

The exit code is 0 if the server is ready, and 1 if it is not or cannot be reached.`,
		Example: `  bloomery probe
  bloomery probe --wait 10s
  bloomery probe http://127.0.0.1:7001/healthz`,
		Args:                  cobra.MaximumNArgs(1),
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().BoolVar(&c.insecure, "insecure", false, "with https://: accept any certificate (for probing this machine)")
	cmd.Flags().Var(&c.timeout, "timeout", "how long to wait for an answer")
	cmd.Flags().Var(&c.wait, "wait", "keep asking for up to this long, until the server is ready")
	return cmd
}

func (c *probeCommand) run(cmd *cobra.Command, args []string) error {
	target := probeURL
	if c.either = len(args) == 0; !c.either {
		target = args[0]
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return usagef("%q is not the URL of a server: give one such as %s", target, probeURL)
	}
	if u.Scheme == "http" && !c.either {
		if err := idle(cmd, "http:// uses no certificates", "insecure"); err != nil {
			return err
		}
	}
	if c.wait < 0 || c.timeout <= 0 {
		return usagef("--wait and --timeout must be above zero")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/readyz"
	}
	answer, err := c.ask(u.String())
	for end := time.Now().Add(time.Duration(c.wait)); err != nil && time.Now().Before(end); {
		time.Sleep(askEvery)
		answer, err = c.ask(u.String())
	}
	if err != nil {
		complain(cmd.ErrOrStderr(), err)
		return exitStatus(exitNothing) // 2 means something else to containers
	}
	fmt.Fprintln(cmd.OutOrStdout(), answer)
	return nil
}

// ask returns the server's answer, and an error unless it is ready.
func (c *probeCommand) ask(target string) (string, error) {
	answer, status, err := c.get(target, c.insecure)
	if c.either && status == http.StatusBadRequest {
		// This is how a server that expects TLS answers a client without it. On the
		// loopback the certificate can only be this machine's own.
		target = strings.Replace(target, "http://", "https://", 1)
		answer, status, err = c.get(target, true)
	}
	if err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("%s: %d %s: %s", target, status, http.StatusText(status), answer)
	}
	return answer, nil
}

// get returns an answer and its status.
func (c *probeCommand) get(target string, insecure bool) (answer string, status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.timeout))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return "", 0, err
	}
	// No proxy: the server is this machine, or one nearby.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure}}}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	const longest = 4096
	body, _ := io.ReadAll(io.LimitReader(response.Body, longest)) // the status decides
	return strings.TrimSpace(string(body)), response.StatusCode, nil
}
