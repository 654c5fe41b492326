package server

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom/redisbloom"
	"github.com/bloomery/bloom/store"
)

// RedisBloom's limits.
const (
	maxRate      = 0.25 // higher rates are lowered to this
	maxCapacity  = 1 << 30
	maxExpansion = 32768
)

// windowExpansion is the factor by which a window enlarges a full generation, unless it
// refuses more keys.
const windowExpansion = 2

// runOne executes a command that could be in a run by itself: after MULTI, or for a
// client that tracks what it reads.
func (c *Client) runOne(args [][]byte) {
	cmd := c.server.commands.find(args[0])
	c.batch.join(c, cmd, args)
	c.batch.flush()
}

// bfReserve makes a filter.
func (c *Client) bfReserve(args [][]byte) {
	spec, growth, refusal := c.parseReserve(args)
	if refusal != "" {
		c.w.Error(refusal)
		return
	}
	switch kind, _ := c.kindAndEnd(args[1]); kind {
	case store.None:
	case store.String, store.Cuckoo:
		c.w.Error(textWrongType)
		return
	default:
		c.unchanged = true
		c.w.Error(textExists)
		return
	}
	if _, err := c.server.create(string(args[1]), spec, growth); err != nil {
		c.createError(err)
		return
	}
	c.w.SimpleString("OK")
}

// usualGrowth is the growth in the headers of filters that the store makes without
// growth.
const usualGrowth = 2

// create makes a filter. growth is the growth that was asked for, even if the filter is
// not to grow: it then means nothing, but RedisBloom's headers hold it, and so do ours.
func (s *Server) create(name string, spec store.Spec, growth uint32) (store.Filter, error) {
	if spec.Kind != store.RedisBloom || spec.Growth != 0 || growth == usualGrowth {
		return s.store.Create(s.ctx, name, spec)
	}
	header, err := redisbloom.Config{Keys: spec.Capacity, Rate: spec.Rate}.NonScalingHeader(growth)
	if err != nil {
		return nil, err
	}
	filter, err := s.store.Load(s.ctx, name, header)
	if err == nil && !spec.Expires.IsZero() {
		err = s.store.Expire(s.ctx, name, spec.Expires)
	}
	return filter, err
}

const (
	textExists    = "ERR item exists"
	textNotCreate = "ERR could not create filter"
	textNoMemory  = "ERR Insufficient memory to create filter"
)

// createError replies that a filter could not be created.
func (c *Client) createError(err error) {
	switch {
	case errors.Is(err, store.ErrExists): // another client made it just now
		c.w.Error(textExists)
	case errors.Is(err, store.ErrMemory):
		c.server.metrics.refuse(limitMemory)
		c.w.Error(textNoMemory + ": " + reason(err))
	case errors.Is(err, store.ErrStopped):
		c.storeError(err)
	default:
		c.w.Error(textNotCreate + ": " + reason(err))
	}
}

// reserveWords are the words after the capacity that RedisBloom does not know, and
// whether a value follows.
var reserveWords = map[string]bool{"LAYOUT": true, "WINDOW": true, "TTL": true, "KEYED": false, "PUBLIC": false}

// The most arguments of BF.RESERVE, without and with our own words.
const (
	maxReserveArgs    = 7
	maxOurReserveArgs = 16
)

// parseReserve reads the arguments of BF.RESERVE in RedisBloom's order, so that of
// several mistakes the same one is reported. Unknown words are ignored, as RedisBloom
// ignores them.
func (c *Client) parseReserve(args [][]byte) (spec store.Spec, growth uint32, refusal string) {
	ours := false
	for _, arg := range args[4:] {
		if _, ok := reserveWords[strings.ToUpper(clip(arg))]; ok {
			ours = true
		}
	}
	if len(args) > maxReserveArgs && (!ours || len(args) > maxOurReserveArgs) {
		return spec, 0, c.server.commands.find(args[0]).arityError()
	}
	spec = *c.server.filter.Load()
	rate, ok := parseFloat(args[2])
	if !ok {
		return spec, 0, "ERR bad error rate"
	}
	if !(rate > 0 && rate < 1) {
		return spec, 0, "ERR error rate must be in the range (0.000000, 1.000000)"
	}
	capacity, ok := integer(args[3])
	if !ok {
		return spec, 0, "ERR bad capacity"
	}
	words := reserveOptions{spec: &spec, expansion: int64(spec.Growth)}
	if refusal := words.parse(args[4:]); refusal != "" {
		return spec, 0, refusal
	}
	// RedisBloom's limit is one of its format; the limit of our layouts is memory.
	if capacity < 1 || spec.Kind == store.RedisBloom && spec.Span == 0 && capacity > maxCapacity {
		return spec, 0, "ERR capacity must be in the range [1, " + strconv.Itoa(maxCapacity) + "]"
	}
	if refusal := words.check(); refusal != "" {
		return spec, 0, refusal
	}
	spec.Rate, spec.Capacity = rate, uint64(capacity)
	if spec.Kind == store.RedisBloom {
		spec.Rate = min(rate, maxRate)
	}
	return spec, uint32(words.expansion), ""
}

// reserveOptions are the words after the capacity. They determine the spec's growth,
// kind, span, hash and end.
type reserveOptions struct {
	spec           *store.Spec
	expansion      int64 // the default unless it was given
	expansionError string
	grows          bool // EXPANSION was given
	nonScaling     bool
	keyed          bool
	layout         bool // LAYOUT was given
}

// parse reads the words. check reports what is wrong with the value of EXPANSION:
// RedisBloom checks the capacity first.
func (o *reserveOptions) parse(words [][]byte) (refusal string) {
	for i := 0; i < len(words); i++ {
		word := strings.ToUpper(clip(words[i]))
		var value []byte
		if word == "EXPANSION" || reserveWords[word] {
			if i+1 == len(words) {
				if word == "EXPANSION" {
					if !o.grows {
						o.expansionError = "ERR no expansion"
					}
					continue
				}
				return "ERR no value behind " + word
			}
			i++
			value = words[i]
		}
		switch word {
		case "EXPANSION":
			if o.grows { // the first one counts
				continue
			}
			n, ok := integer(value)
			if !ok {
				o.expansionError = "ERR bad expansion"
			}
			o.expansion, o.grows = n, true
		case "NONSCALING":
			o.nonScaling = true
		case "LAYOUT":
			o.layout = true
			var refusal string
			if o.spec.Kind, refusal = parseLayout(value); refusal != "" {
				return refusal
			}
		case "WINDOW":
			span, ok := parseSpan(value)
			if !ok {
				return "ERR bad window: give a time such as 24h, 30m or 90s"
			}
			o.spec.Span = span
		case "TTL":
			span, ok := parseSpan(value)
			if !ok {
				return "ERR bad TTL: give seconds, or a time such as 24h"
			}
			o.spec.Expires = time.Now().Add(span)
		case "KEYED":
			o.keyed = true
		case "PUBLIC":
			o.spec.Public = true
		}
	}
	return ""
}

// parseLayout reads the value of LAYOUT.
func parseLayout(value []byte) (kind store.Kind, refusal string) {
	for _, kind := range []store.Kind{store.Paired, store.Counting, store.RedisBloom} {
		if is(value, strings.ToUpper(kind.String())) {
			return kind, ""
		}
	}
	return store.None, "ERR unknown layout '" + clip(value) + "': PAIRED, COUNTING or REDISBLOOM"
}

// check refuses options that exclude each other, and completes the spec.
func (o *reserveOptions) check() (refusal string) {
	switch {
	case o.expansionError != "":
		return o.expansionError
	case o.nonScaling && o.grows && o.expansion > 0:
		return "Nonscaling filters cannot expand"
	case o.expansion < 0 || o.expansion > maxExpansion:
		return "ERR expansion must be in the range [0, " + strconv.Itoa(maxExpansion) + "]"
	case o.spec.Span > 0 && o.layout && o.spec.Kind == store.RedisBloom:
		return "ERR a filter of layout REDISBLOOM has no window"
	case o.spec.Span > 0 && o.layout && o.spec.Kind == store.Counting:
		return "ERR a filter of layout COUNTING has no window"
	case o.spec.Span > 0 && o.grows && o.expansion != 0 && o.expansion != windowExpansion:
		return "ERR a window grows by doubling: give EXPANSION 2, or NONSCALING"
	case o.keyed && o.spec.Public:
		return "ERR KEYED and PUBLIC exclude each other"
	}
	if o.spec.Span > 0 {
		o.spec.Kind = store.Window
	}
	switch {
	case o.spec.Kind == store.RedisBloom && o.keyed:
		return "ERR a filter of layout REDISBLOOM is always public: KEYED needs LAYOUT PAIRED or COUNTING, or WINDOW"
	case o.spec.Kind == store.RedisBloom:
		o.spec.Public = true
	case o.keyed:
		o.spec.Public = false
	}
	if o.grows {
		o.spec.Growth = uint32(o.expansion)
	}
	if o.spec.Kind == store.Window {
		o.spec.Growth = min(o.spec.Growth, 1) * windowExpansion
	}
	if o.nonScaling {
		o.spec.Growth = 0
	}
	return ""
}

// bfInsert adds items to a filter, creating it as the options say if there is none.
func (c *Client) bfInsert(args [][]byte) {
	spec := *c.server.filter.Load()
	create, nonScaling := true, false
	options, items := args[2:], [][]byte(nil)
	for len(options) > 0 && items == nil {
		word := strings.ToUpper(clip(options[0]))
		value := []byte(nil)
		if len(options) > 1 {
			value = options[1]
		}
		used := 2
		// RedisBloom compares only the first letters.
		switch {
		case strings.HasPrefix(word, "I"):
			items = options[1:]
		case strings.HasPrefix(word, "N"):
			used = 1
			if len(word) > 2 && word[2] == 'C' {
				create = false
			} else {
				nonScaling = true
			}
		case !strings.HasPrefix(word, "E") && !strings.HasPrefix(word, "C") && !strings.HasPrefix(word, "L"):
			c.w.Error("Unknown argument received")
			return
		case value == nil: // all words below take a value
			c.wrongArity(c.server.commands.find(args[0]))
			return
		case strings.HasPrefix(word, "ER"):
			rate, ok := parseFloat(value)
			if !ok || !(rate > 0 && rate < 1) {
				c.w.Error("Bad error rate")
				return
			}
			spec.Rate = rate
		case strings.HasPrefix(word, "E"):
			n, ok := integer(value)
			if !ok || n < 0 || n > maxExpansion {
				c.w.Error("Bad expansion")
				return
			}
			spec.Growth = uint32(n)
		case strings.HasPrefix(word, "L"): // ours
			var refusal string
			if spec.Kind, refusal = parseLayout(value); refusal != "" {
				c.w.Error(refusal)
				return
			}
		default:
			n, ok := integer(value)
			if !ok || n < 1 {
				c.w.Error("Bad capacity")
				return
			}
			spec.Capacity = uint64(n)
		}
		options = options[min(used, len(options)):]
	}
	if spec.Kind == store.RedisBloom && spec.Capacity > maxCapacity { // LAYOUT may follow CAPACITY
		c.w.Error("Bad capacity")
		return
	}
	if len(items) == 0 {
		c.wrongArity(c.server.commands.find(args[0]))
		return
	}
	growth := spec.Growth
	if nonScaling { // wherever EXPANSION stands
		spec.Growth = 0
	}
	if spec.Kind == store.RedisBloom {
		spec.Rate, spec.Public = min(spec.Rate, maxRate), true
	}
	_, err := c.server.openBloom(args[1])
	if errors.Is(err, store.ErrNotFound) && create {
		_, err = c.server.openOrCreateAs(args[1], spec, growth, err)
	}
	if err != nil {
		c.insertError(err)
		return
	}
	c.batch.joinItems(c, runAdd, args[1], items, true)
	c.batch.flush()
	c.unchanged = true // except for what the run has reported
}

// insertError replies that BF.INSERT had no filter to add to.
func (c *Client) insertError(err error) {
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrWrongKind) {
		c.storeError(err)
		return
	}
	c.createError(err)
}

// openOrCreateAs creates the filter that Open has not found; err is Open's error. If
// another client creates it at the same time, that filter is used.
func (s *Server) openOrCreateAs(name []byte, spec store.Spec, growth uint32, notFound error) (store.Filter, error) {
	if !errors.Is(notFound, store.ErrNotFound) {
		return nil, notFound
	}
	if spec.Kind == store.RedisBloom {
		spec.Rate, spec.Public = min(spec.Rate, maxRate), true
	}
	filter, err := s.create(string(name), spec, growth)
	if errors.Is(err, store.ErrExists) {
		return s.store.Open(name)
	}
	return filter, err
}

// parseFloat reads a number like C's strtod, which Redis uses, but refuses NaN and
// numbers that are too large or too small.
func parseFloat(arg []byte) (float64, bool) {
	text := strings.ToLower(string(arg))
	if strings.Contains(text, "_") { // only Go allows it
		return 0, false
	}
	exponent, digits := "e", "123456789"
	if strings.Contains(text, "0x") {
		exponent, digits = "p", "123456789abcdef"
		if !strings.Contains(text, exponent) { // only Go requires it
			text += "p0"
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.Replace(text, "0x", "", 1), exponent)
	tooSmall := f == 0 && strings.ContainsAny(mantissa, digits)
	return f, err == nil && !math.IsNaN(f) && !tooSmall
}

// parseSpan reads a duration: seconds, or Go's notation with d for days.
func parseSpan(arg []byte) (time.Duration, bool) {
	const longest = 100 * 365 * 24 * time.Hour
	text, unit := string(arg), time.Second
	if days, ok := strings.CutSuffix(text, "d"); ok {
		text, unit = days, 24*time.Hour
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(n) * unit, n > 0 && n <= int64(longest/unit)
	}
	span, err := time.ParseDuration(text)
	return span, err == nil && unit == time.Second && span > 0 && span <= longest
}
