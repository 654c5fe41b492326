package server

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
)

// A parameter is a parameter of CONFIG.
type parameter struct {
	get func(s *Server) string

	// set changes the new settings, or returns why it cannot. It is nil for parameters
	// of the command line.
	set func(to *settings, value string) error
}

// settings are the values that CONFIG SET can change.
type settings struct {
	filter store.Spec
	limits Limits
}

// fixed returns a parameter with one value, which CONFIG SET may repeat.
func fixed(value string) parameter { return parameter{get: func(*Server) string { return value }} }

// parameters are those that CONFIG knows: RedisBloom's defaults for new filters, our
// limits under Redis's names, and what clients ask for. Secrets are not among them.
var parameters = map[string]parameter{
	"bf-error-rate": {
		get: func(s *Server) string { return strconv.FormatFloat(s.filter.Load().Rate, 'g', -1, 64) },
		set: func(to *settings, value string) error {
			rate, ok := parseFloat([]byte(value))
			if !ok || !(rate > 0 && rate < 1) {
				return fmt.Errorf("argument must be a number above 0 and below 1")
			}
			if to.filter.Kind == store.RedisBloom {
				rate = min(rate, maxRate)
			}
			to.filter.Rate = rate
			return nil
		}},
	"bf-initial-size": {
		get: func(s *Server) string { return strconv.FormatUint(s.filter.Load().Capacity, 10) },
		set: func(to *settings, value string) error {
			n, err := between(value, 1, maxCapacity)
			to.filter.Capacity = uint64(n)
			return err
		}},
	"bf-expansion-factor": {
		get: func(s *Server) string { return strconv.FormatUint(uint64(s.filter.Load().Growth), 10) },
		set: func(to *settings, value string) error {
			n, err := between(value, 0, maxExpansion)
			to.filter.Growth = uint32(n)
			return err
		}},
	"maxclients": {
		get: func(s *Server) string { return strconv.Itoa(s.limits.Load().Clients) },
		set: func(to *settings, value string) error {
			n, err := between(value, 1, math.MaxInt32)
			if most := mostClients(); err == nil && n > int64(most) {
				err = fmt.Errorf("%s %d", textManyClients, most)
			}
			to.limits.Clients = int(n)
			return err
		}},
	"timeout": {
		get: func(s *Server) string { return strconv.Itoa(int(s.limits.Load().Idle.Seconds())) },
		set: func(to *settings, value string) error {
			n, err := between(value, 0, math.MaxInt32)
			to.limits.Idle = time.Duration(n) * time.Second
			return err
		}},
	"maxmemory": {get: func(s *Server) string {
		_, limit := s.store.Usage()
		return strconv.FormatUint(limit, 10)
	}},
	"proto-max-bulk-len":         {get: func(s *Server) string { return strconv.Itoa(s.limits.Load().PayloadBytes) }},
	"maxmemory-clients":          {get: func(s *Server) string { return strconv.Itoa(s.limits.Load().BufferBytes) }},
	"client-query-buffer-limit":  {get: func(s *Server) string { return strconv.Itoa(s.limits.Load().CommandBytes) }},
	"io-threads":                 {get: func(s *Server) string { return strconv.Itoa(max(s.config.Loops, 1)) }},
	"cf-bucket-size":             fixed(strconv.Itoa(usualNestSlots)),
	"cf-initial-size":            fixed("1024"),
	"cf-max-iterations":          fixed("20"),
	"cf-expansion-factor":        fixed("1"),
	"cf-max-expansions":          fixed(strconv.Itoa(bloom.MaxCuckooLayers)),
	"tracking-table-max-keys":    fixed("0"),
	"maxmemory-policy":           fixed("noeviction"),
	"databases":                  fixed(strconv.Itoa(databases)),
	"save":                       fixed(""),
	"appendonly":                 fixed("no"),
	"cluster-enabled":            fixed("no"),
	"notify-keyspace-events":     fixed(""),
	"slowlog-log-slower-than":    fixed("-1"),
	"slowlog-max-len":            fixed("0"),
	"latency-monitor-threshold":  fixed("0"),
	"lazyfree-lazy-user-flush":   fixed("yes"),
	"close-on-oom":               fixed("no"),
	"hide-user-data-from-log":    fixed("yes"),
	"replica-read-only":          fixed("yes"),
	"client-output-buffer-limit": {get: func(s *Server) string { return "normal " + strconv.Itoa(s.limits.Load().OutputBytes) + " 0 0" }},
}

// between reads a whole number in a range.
func between(value string, from, to int64) (int64, error) {
	n, ok := integer([]byte(value))
	if !ok {
		return 0, errors.New("argument couldn't be parsed into an integer")
	}
	if n < from || n > to {
		return 0, fmt.Errorf("argument must be between %d and %d inclusive", from, to)
	}
	return n, nil
}

// configGet replies with the parameters that match any of the patterns, sorted by name.
func (c *Client) configGet(args [][]byte) {
	var names []string
	patterns := make([]*glob, len(args)-2)
	for i, pattern := range args[2:] {
		var ok bool
		if patterns[i], ok = c.glob(bytes.ToLower(pattern)); !ok {
			return
		}
	}
	for name := range parameters {
		if slices.ContainsFunc(patterns, func(g *glob) bool { return g.matches(name) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	c.w.Map(len(names))
	for _, name := range names {
		c.w.BulkString(name)
		c.w.BulkString(parameters[name].get(c.server))
	}
}

// configSet changes all the given parameters, or none.
func (c *Client) configSet(args [][]byte) {
	if len(args)%2 != 0 {
		c.w.Error(textSyntax)
		return
	}
	s := c.server
	to := settings{*s.filter.Load(), *s.limits.Load()}
	seen := map[string]bool{}
	for i := 2; i < len(args); i += 2 {
		name, value := strings.ToLower(string(args[i])), string(args[i+1])
		p, ok := parameters[name]
		switch {
		case !ok:
			c.w.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + clip(args[i]) + "'")
			return
		case seen[name]:
			c.w.Error(configFailed(name, "duplicate parameter"))
			return
		case p.set == nil && value != p.get(s):
			c.w.Error(configFailed(name, "can't set immutable config"))
			return
		case p.set != nil:
			if err := p.set(&to, value); err != nil {
				c.w.Error(configFailed(name, err.Error()))
				return
			}
		}
		seen[name] = true
	}
	s.filter.Store(&to.filter)
	s.limits.Store(&to.limits)
	s.eachClient(func(c *Client) { c.transport.retime() })
	c.w.SimpleString("OK")
}

func configFailed(name, why string) string {
	return "ERR CONFIG SET failed (possibly related to argument '" + name + "') - " + why
}

func (c *Client) configResetStat(args [][]byte) {
	now := c.server.counted()
	c.server.informed.reset.Store(&now)
	c.w.SimpleString("OK")
}

func (c *Client) configRewrite(args [][]byte) {
	c.w.Error("ERR The server is running without a config file")
}

const textManyClients = "The operating system is not able to handle the specified number of clients, try with"
