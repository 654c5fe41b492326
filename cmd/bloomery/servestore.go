package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/bloomery/bloom/server"
	"github.com/bloomery/bloom/store"
	"github.com/bloomery/bloom/store/redisstore"
	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
)

// storeOptions are the flags of 'serve' for filters that are kept in Redis or Valkey.
type storeOptions struct {
	seeds                []string
	prefix, password, ca string
	trust, checkFirst    bool
	durability           redisstore.Durability
}

func (o *storeOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&o.seeds, "store", nil, "keep filters in the Redis or Valkey at `URL`, redis://[USER@]HOST:PORT, or rediss:// for TLS; of a cluster, some nodes, separated by commas")
	o.addConnection(cmd)
	f.BoolVar(&o.checkFirst, "check-first", false, "with --store: look keys up before adding them; faster if most repeat")
}

// addConnection adds the flags that fsck has, too.
func (o *storeOptions) addConnection(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.prefix, "store-prefix", redisstore.DefaultPrefix, "`PREFIX` of all keys there")
	f.StringVar(&o.password, "store-password-file", "", "its password, in `FILE`; without, "+passwordVariable)
	f.StringVar(&o.ca, "store-ca", "", "with rediss://: trust the certificates in `FILE` (PEM) instead of the system's")
	f.BoolVar(&o.trust, "trust-store", false, "use it even if its settings lose filters, or cannot be read")
}

func (o *storeOptions) used() bool { return len(o.seeds) > 0 }

// checkStore refuses flags that do not go together.
func (o *serveOptions) checkStore(cmd *cobra.Command) error {
	if !o.store.used() {
		for _, name := range []string{"store-prefix", "store-password-file", "store-ca", "trust-store", "check-first"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s is for --store", name)
			}
		}
		return nil
	}
	for _, clash := range []struct{ name, why string }{
		{"data", "the filters are kept there, not here"},
		{"memory", "the filters take memory there, not here: set maxmemory there"},
		{"loops", "each connection waits for the store by itself"},
	} {
		if cmd.Flags().Changed(clash.name) {
			return usagef("--%s does not go with --store: %s", clash.name, clash.why)
		}
	}
	switch {
	case !cmd.Flags().Changed("layout"):
	case o.layout == "redisbloom":
		return usagef("--layout redisbloom does not go with --store: a key's bits would lie on many nodes; the layout is paired")
	case o.layout == "counting":
		return usagef("--layout counting does not go with --store: keys cannot be removed there; the layout is paired")
	}
	o.layout = "paired"
	if !cmd.Flags().Changed("durability") {
		o.durability = "async"
	}
	var err error
	if o.store.durability, err = redisstore.ParseDurability(o.durability); err != nil {
		return usagef("--durability with --store is async, wait:N or replay:TIME like replay:10s, not %q", o.durability)
	}
	return nil
}

// options returns how to connect.
func (o *storeOptions) options() (options rueidis.ClientOption, err error) {
	for i, seed := range o.seeds {
		one, err := rueidis.ParseURL(seed)
		if err != nil {
			if u, broken := url.Parse(seed); broken == nil {
				seed = u.Redacted()
			} else {
				seed = "the address" // may have a password
			}
			return options, usagef("--store: %s is not redis://[USER@]HOST:PORT", seed)
		}
		if i == 0 {
			options = one
		} else {
			options.InitAddress = append(options.InitAddress, one.InitAddress...)
		}
	}
	switch {
	case o.password != "":
		if options.Password, err = readPassword(o.password); err != nil {
			return options, err
		}
	case options.Password == "":
		options.Password = os.Getenv(passwordVariable)
	}
	if err := trust(&options, "--store-ca", o.ca); err != nil {
		return options, err
	}
	options.DisableCache = true
	options.ClientName = "bloomery"
	options.Dialer = net.Dialer{Timeout: dialTime}
	options.ConnWriteTimeout = storeTime
	return options, nil
}

// storeTime is how long a node of the store may take to answer.
const storeTime = 10 * time.Second

// openStore connects to the store.
func (o *storeOptions) openStore(ctx context.Context) (s *redisstore.Store, end func(), err error) {
	options, err := o.options()
	if err != nil {
		return nil, nil, err
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, nil, fmt.Errorf("--store %s: %w", options.InitAddress[0], err)
	}
	s, err = redisstore.New(ctx, client, redisstore.Config{Prefix: o.prefix, Trusted: o.trust, CheckFirst: o.checkFirst, Durability: o.durability})
	if err != nil {
		client.Close()
		if errors.Is(err, redisstore.ErrSettings) {
			err = fmt.Errorf("%w; or accept the risk with --trust-store", err)
		}
		return nil, nil, fmt.Errorf("--store: %w", err)
	}
	return s, client.Close, nil
}

// Filters that BF.ADD makes in a store of many machines do not grow, so they are larger
// than RedisBloom's.
const storeCapacity = 1_000_000

// serveStore serves the filters of a store on other machines.
func (o *serveOptions) serveStore(cmd *cobra.Command, config server.Config) error {
	config.NonScaling = true
	config.Filter = store.Spec{Kind: store.Paired, Capacity: storeCapacity}
	l, end, err := o.listenAll(config)
	if err != nil {
		return err
	}
	defer end()
	filters, disconnect, err := o.store.openStore(cmd.Context())
	if err != nil {
		return err
	}
	defer disconnect()
	config.Log.Info("filters are kept in a store on other machines", "prefix", o.store.prefix)
	err = o.serve(cmd, filters, config, l)
	return joinClosed(err, filters.Close())
}
