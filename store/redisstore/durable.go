package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

// Durability says what an acknowledged add survives beyond the death of a process. The
// zero value is asynchronous: what the servers' replication and logs have not done yet
// when a machine fails is lost. The two ways may be combined.
type Durability struct {
	// Replicas is how many replicas must have an add before it is acknowledged. A
	// master needs one more than that: while a replica is missing, its adds are not
	// acknowledged.
	Replicas int

	// Replay is how long adds are remembered after they are acknowledged. When a server
	// fails or another takes over, all of them are sent again, which does no harm to
	// those that are there. So nothing is lost that was acknowledged less than Replay
	// before that was noticed, unless this process dies at the same time. It takes
	// eight bytes per add and half as much again.
	Replay time.Duration
}

func (d Durability) String() string {
	var words []string
	if d.Replicas > 0 {
		words = append(words, "wait:"+strconv.Itoa(d.Replicas))
	}
	if d.Replay > 0 {
		words = append(words, "replay:"+d.Replay.String())
	}
	if words == nil {
		return "async"
	}
	return strings.Join(words, ",")
}

// ParseDurability reads async, wait:N, replay:TIME, or the last two with a comma.
func ParseDurability(text string) (d Durability, err error) {
	if text == "async" {
		return d, nil
	}
	for _, word := range strings.Split(text, ",") {
		what, value, _ := strings.Cut(word, ":")
		switch what {
		case "wait":
			d.Replicas, err = strconv.Atoi(value)
			if err == nil && d.Replicas < 1 {
				err = errors.New("it waits for one replica at least")
			}
		case "replay":
			d.Replay, err = time.ParseDuration(value)
			if err == nil && d.Replay < time.Second {
				err = errors.New("it remembers a second at least")
			}
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return Durability{}, fmt.Errorf("redisstore: durability is async, wait:N or replay:TIME like replay:10s, not %q: %w", text, err)
		}
	}
	return d, nil
}

// ErrUnconfirmed: an add was done, but fewer replicas have it than it was to wait for.
// Add again.
var ErrUnconfirmed = errors.New("redisstore: not confirmed by enough replicas")

// add sends calls that add keys, and the one that counts, and waits for replicas if it
// is to.
func (s *Store) add(ctx context.Context, calls []call, count call) (replies []rueidis.RedisResult, counted rueidis.RedisResult) {
	if s.config.Durability.Replicas == 0 {
		replies, _ = s.do(ctx, append(calls, count))
		return replies[:len(calls)], replies[len(calls)]
	}
	var wait sync.WaitGroup
	wait.Go(func() { counted = s.call(ctx, count) })
	replies = s.addConfirmed(ctx, calls)
	wait.Wait()
	return replies, counted
}

// confirmTime is how long replicas may take, at most: half of Config.Timeout if that is
// less.
const confirmTime = time.Second

// addConfirmed sends each master its calls and, on the same connection, WAIT: this is why
// it finds the masters itself.
func (s *Store) addConfirmed(ctx context.Context, calls []call) []rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	replies := make([]rueidis.RedisResult, len(calls))
	left := make([]int, len(calls))
	for i := range left {
		left[i] = i
	}
	asked := map[int]string{} // where ASK has sent a call
	whole := map[int]bool{}   // by EVAL, because the script was unknown
	for try := 0; len(left) > 0; try++ {
		groups := map[string][]int{}
		for _, i := range left {
			address := asked[i]
			if address == "" {
				address = s.masterOf(ctx, calls[i])
			}
			groups[address] = append(groups[address], i)
		}
		var wait sync.WaitGroup
		for address, group := range groups {
			wait.Go(func() { s.sendConfirmed(ctx, address, calls, group, asked, whole, replies) })
		}
		wait.Wait()
		// What was sent to the wrong server was not done, so it is sent again.
		again := left[:0]
		for _, i := range left {
			e, ok := rueidis.IsRedisErr(replies[i].Error())
			delete(asked, i)
			switch {
			case !ok || try == 5:
				continue
			case e.IsNoScript():
				whole[i] = true
			default:
				if address, ask := e.IsAsk(); ask {
					asked[i] = address
				} else if _, moved := e.IsMoved(); moved {
					s.routes.forget()
				} else if e.IsTryAgain() {
					time.Sleep(10 * time.Millisecond)
				} else {
					continue
				}
			}
			again = append(again, i)
		}
		left = again
	}
	return replies
}

// sendConfirmed sends a server the calls of a group, and WAIT.
func (s *Store) sendConfirmed(ctx context.Context, address string, calls []call, group []int, asked map[int]string, whole map[int]bool, replies []rueidis.RedisResult) {
	fail := func(err error) {
		s.routes.forget()
		for _, i := range group {
			replies[i] = rueidis.NewErrorResult(err)
		}
	}
	client, err := s.node(address)
	if err != nil {
		fail(err)
		return
	}
	var commands []rueidis.Completed
	var at []int // of each call's reply
	for _, i := range group {
		if asked[i] != "" {
			commands = append(commands, client.B().Asking().Build())
		}
		at = append(at, len(commands))
		commands = append(commands, calls[i].build(client.B(), whole[i]))
	}
	commands = append(commands, client.B().Wait().Numreplicas(int64(s.config.Durability.Replicas)).Timeout(min(confirmTime, s.config.Timeout/2).Milliseconds()).Build())
	got := client.DoMulti(ctx, commands...)
	n, err := got[len(got)-1].AsInt64()
	if _, ok := rueidis.IsRedisErr(err); err != nil && !ok {
		fail(err)
		return
	}
	for j, i := range group {
		replies[i] = got[at[j]]
		if replies[i].Error() == nil && n < int64(s.config.Durability.Replicas) {
			replies[i] = rueidis.NewErrorResult(fmt.Errorf("%w: %d of %d", ErrUnconfirmed, n, s.config.Durability.Replicas))
		}
	}
}

// routes says which master has which slot.
type routes struct {
	mu      sync.Mutex
	masters []string // by slot; nil: not known
}

func (r *routes) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.masters = nil
}

const slots = 16384

// masterOf returns the address of the master that has a call's keys; empty if there is
// no cluster, or if it is unknown.
func (s *Store) masterOf(ctx context.Context, c call) string {
	if s.client.Mode() != rueidis.ClientModeCluster {
		return ""
	}
	command := c.build(s.client.B(), false)
	s.routes.mu.Lock()
	defer s.routes.mu.Unlock()
	if s.routes.masters == nil {
		masters, err := s.readRoutes(ctx)
		if err != nil {
			return "unknown"
		}
		s.routes.masters = masters
	}
	return s.routes.masters[command.Slot()]
}

// readRoutes asks for the masters of all slots.
func (s *Store) readRoutes(ctx context.Context) ([]string, error) {
	ranges, err := s.ask(ctx, s.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, err
	}
	masters := make([]string, slots)
	for _, r := range ranges {
		fields, err := r.ToArray()
		if err != nil || len(fields) < 3 {
			continue
		}
		from, _ := fields[0].AsInt64()
		to, _ := fields[1].AsInt64()
		node, err := fields[2].ToArray()
		if err != nil || len(node) < 2 {
			continue
		}
		host, _ := node[0].ToString()
		port, _ := node[1].AsInt64()
		for slot := max(from, 0); slot <= to && slot < slots; slot++ {
			masters[slot] = net.JoinHostPort(host, strconv.FormatInt(port, 10))
		}
	}
	return masters, nil
}

// node returns the client of a server; for an empty address, that of the only one.
func (s *Store) node(address string) (rueidis.Client, error) {
	if address == "" {
		return s.client, nil
	}
	if client := s.client.Nodes()[address]; client != nil {
		return client, nil
	}
	return nil, fmt.Errorf("no server at %s, of %v", address, slices.Sorted(maps.Keys(s.client.Nodes())))
}

// replayer remembers the adds of the last while, and sends them again.
type replayer struct {
	store *Store
	keep  time.Duration

	mu      sync.Mutex
	seconds []second      // oldest first
	alarm   time.Time     // until then something may get lost; zero: there is no alarm
	since   time.Time     // what was added since then is to be sent again
	wake    chan struct{} // an alarm has begun

	stop    context.CancelFunc
	stopped chan struct{}
}

func startReplay(s *Store, keep time.Duration) *replayer {
	ctx, stop := context.WithCancel(s.ctx)
	r := &replayer{store: s, keep: keep, wake: make(chan struct{}, 1), stop: stop, stopped: make(chan struct{})}
	go func() {
		defer close(r.stopped)
		r.run(ctx)
	}()
	return r
}

// close sends again what may have been lost, if there is an alarm.
func (r *replayer) close() error {
	r.stop()
	<-r.stopped
	if r.since.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.store.ctx, r.store.config.Timeout)
	defer cancel()
	if !r.send(ctx, r.since) {
		return fmt.Errorf("%w: adds of the last %v may be lost: servers have failed, and the adds could not be sent again", ErrUnreachable, r.keep)
	}
	return nil
}

// inAlarm reports whether something may have been lost that was not sent again yet.
func (r *replayer) inAlarm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.since.IsZero()
}

// second is what was added in a second.
type second struct {
	began  time.Time
	hashes map[*filter][]uint64
}

// note remembers the spans that which lists. Like suspect, it does nothing without a
// replayer.
func (r *replayer) note(f *filter, spans []span, which []int) {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.seconds); n == 0 || now.Sub(r.seconds[n-1].began) >= time.Second {
		r.prune(now)
		r.seconds = append(r.seconds, second{now, map[*filter][]uint64{}})
	}
	last := r.seconds[len(r.seconds)-1].hashes
	hashes := last[f]
	for _, i := range which {
		hashes = append(hashes, spans[i].hash)
	}
	last[f] = hashes
}

// prune forgets what is old enough. The lock is held.
func (r *replayer) prune(now time.Time) {
	oldest := now.Add(-r.keep - time.Second)
	if !r.since.IsZero() && r.since.Before(oldest) {
		oldest = r.since
	}
	n := 0
	for n < len(r.seconds) && r.seconds[n].began.Before(oldest) {
		n++
	}
	r.seconds = slices.Delete(r.seconds, 0, n)
}

// suspect begins an alarm, or prolongs it: a server has failed, or another has taken
// over.
func (r *replayer) suspect() {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alarm = now.Add(r.keep)
	if r.since.IsZero() {
		r.since = now.Add(-r.keep - time.Second)
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// pollTime is how often the servers are asked whether another has taken over: clients
// hide that.
const pollTime = time.Second

// run sends adds again: when an alarm begins, so that they are missing for a short time
// only, and when it ends. In between a server that has been replaced without knowing it
// may still have acknowledged some.
func (r *replayer) run(ctx context.Context) {
	tick := time.NewTicker(pollTime)
	defer tick.Stop()
	known := ""
	for ctx.Err() == nil {
		began := false
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
			began = true
		case <-tick.C:
			if now := r.store.generation(ctx); now != "" {
				if known != "" && now != known {
					r.suspect()
				}
				known = now
			}
		}
		r.mu.Lock()
		r.prune(time.Now())
		since, over := r.since, !r.since.IsZero() && time.Now().After(r.alarm)
		r.mu.Unlock()
		if !began && !over || !r.send(ctx, since) || !over {
			continue
		}
		r.mu.Lock()
		if time.Now().After(r.alarm) { // it was not prolonged
			r.since = time.Time{}
		}
		r.mu.Unlock()
	}
}

// send sends what was added since a time, and reports whether all of it arrived.
func (r *replayer) send(ctx context.Context, since time.Time) (all bool) {
	r.mu.Lock()
	todo := map[*filter][]uint64{}
	for _, s := range r.seconds {
		if s.began.After(since.Add(-time.Second)) {
			for f, hashes := range s.hashes {
				todo[f] = append(todo[f], hashes...)
			}
		}
	}
	r.mu.Unlock()
	all = true
	for f, hashes := range todo {
		for len(hashes) > 0 && ctx.Err() == nil {
			n := min(len(hashes), mostKeys)
			switch err := f.addAgain(ctx, hashes[:n]); {
			case errors.Is(err, store.ErrNotFound), errors.Is(err, ErrDamaged): // it is no use
			case err != nil:
				all = false
				time.Sleep(100 * time.Millisecond)
			}
			hashes = hashes[n:]
		}
	}
	return all && ctx.Err() == nil
}

// generation returns something that changes when another server takes over.
func (s *Store) generation(ctx context.Context) string {
	if s.client.Mode() == rueidis.ClientModeCluster {
		text, _ := s.ask(ctx, s.client.B().ClusterInfo().Build()).ToString()
		return line(text, "cluster_current_epoch:")
	}
	text, _ := s.ask(ctx, s.client.B().Info().Section("server").Build()).ToString()
	return line(text, "run_id:")
}

// line returns the rest of the line that begins with a prefix.
func line(text, prefix string) string {
	for l := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}
