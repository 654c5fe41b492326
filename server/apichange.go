package server

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/bloomery/bloom/internal/resp"
	"github.com/bloomery/bloom/store"
)

// A doneJSON is the answer to a change that answers nothing else.
type doneJSON struct {
	Done bool `json:"done" doc:"always true"`
}

// done executes a command whose reply says only that it was done.
func (q *apiRequest) done(args ...[]byte) (any, error) {
	if _, err := q.command(args...); err != nil {
		return nil, err
	}
	return doneJSON{true}, nil
}

// A reserveJSON is a filter to make, with the words of BF.RESERVE.
type reserveJSON struct {
	Capacity   uint64  `json:"capacity" doc:"items; of a window, in one span"`
	Rate       float64 `json:"rate" doc:"the rate of wrong answers, above 0 and below 1"`
	Layout     string  `json:"layout,omitempty" doc:"paired, counting or redisbloom; missing: the server's"`
	Window     string  `json:"window,omitempty" doc:"how long keys are remembered: seconds, or a time such as 24h or 7d"`
	TTL        string  `json:"ttl,omitempty" doc:"when the name expires: seconds, or a time such as 24h"`
	Expansion  *uint32 `json:"expansion,omitempty" doc:"how much larger each further layer is"`
	NonScaling bool    `json:"nonscaling,omitempty" doc:"refuse items beyond the capacity"`
	Keyed      bool    `json:"keyed,omitempty" doc:"hash with the server's secret"`
	Public     bool    `json:"public,omitempty" doc:"hash without a secret"`
}

func putFilter(q *apiRequest) (any, error) {
	sent := q.sent.(*reserveJSON)
	args := [][]byte{[]byte("BF.RESERVE"), q.name, []byte(strconv.FormatFloat(sent.Rate, 'g', -1, 64)), strconv.AppendUint(nil, sent.Capacity, 10)}
	add := func(given bool, text ...string) {
		if given {
			args = append(args, argsOf(text...)...)
		}
	}
	add(sent.Layout != "", "LAYOUT", sent.Layout)
	add(sent.Window != "", "WINDOW", sent.Window)
	add(sent.TTL != "", "TTL", sent.TTL)
	if sent.Expansion != nil {
		add(true, "EXPANSION", strconv.FormatUint(uint64(*sent.Expansion), 10))
	}
	add(sent.NonScaling, "NONSCALING")
	add(sent.Keyed, "KEYED")
	add(sent.Public, "PUBLIC")
	return q.done(args...)
}

func deleteFilter(q *apiRequest) (any, error) {
	if _, _, err := q.open(); err != nil { // DEL would also delete what is no filter
		return nil, err
	}
	reply, err := q.command([]byte("DEL"), q.name)
	if err == nil && reply.Integer == 0 {
		err = storeRefusal(store.ErrNotFound)
	}
	return doneJSON{true}, err
}

// A keysJSON is a list of keys.
type keysJSON struct {
	Keys []apiText `json:"keys" doc:"strings, or {\"base64\": \"...\"} for bytes that are not UTF-8"`
}

// isCuckoo reports whether the request is for a cuckoo filter, which takes other commands.
func (q *apiRequest) isCuckoo() bool {
	filter, err := q.server.store.Open(q.name)
	return err == nil && isCuckoo(filter)
}

// keyCommand executes a command with the keys that were sent, which follow the words.
func (q *apiRequest) keyCommand(name string, words ...string) (resp.Reply, error) {
	keys := q.sent.(*keysJSON).Keys
	switch {
	case len(keys) > httpKeys:
		q.server.metrics.refuse(limitHTTPKeys)
		return resp.Reply{}, refusal(http.StatusRequestEntityTooLarge, "too many keys%s", limitSuffix(limitHTTPKeys, httpKeys))
	case len(keys) == 0:
		return resp.Reply{}, refusal(http.StatusBadRequest, `send at least one key, as {"keys": ["..."]}`)
	}
	args := append([][]byte{[]byte(name), q.name}, argsOf(words...)...)
	for _, key := range keys {
		if key == nil {
			return resp.Reply{}, refusal(http.StatusBadRequest, "null is no key")
		}
		args = append(args, key)
	}
	return q.command(args...)
}

type addedJSON struct {
	New []bool `json:"new" doc:"of each key, in order: true: it was certainly new; false: it was there, or is a false positive"`
}

// An addError is that of an add of many keys of which some were added.
type addError struct {
	apiError
	isNew []bool
}

func (e *addError) Unwrap() error { return &e.apiError }

func addKeys(q *apiRequest) (any, error) {
	var reply resp.Reply
	var err error
	if q.isCuckoo() {
		reply, err = q.keyCommand("CF.INSERTNX", "ITEMS")
	} else {
		reply, err = q.keyCommand("BF.MADD")
	}
	if err != nil {
		return nil, err
	}
	isNew := make([]bool, 0, len(reply.Items))
	for _, item := range reply.Items {
		switch {
		case item.Kind == resp.SimpleError:
			return nil, &addError{*replyError(item.Text).(*apiError), isNew}
		case item.Kind == resp.Integer && item.Integer < 0:
			return nil, &addError{*replyError(textFull).(*apiError), isNew}
		}
		isNew = append(isNew, isTrue(item))
	}
	return addedJSON{isNew}, nil
}

func isTrue(reply resp.Reply) bool { return reply.Bool || reply.Integer == 1 }

type foundJSON struct {
	Found []bool `json:"found" doc:"of each key, in order: false: it was certainly never added; true: it was, or is a false positive"`
}

func checkKeys(q *apiRequest) (any, error) {
	name := "BF.MEXISTS"
	if q.isCuckoo() {
		name = "CF.MEXISTS"
	}
	reply, err := q.keyCommand(name)
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(reply.Items))
	for i, item := range reply.Items {
		found[i] = isTrue(item)
	}
	return foundJSON{found}, nil
}

type keyJSON struct {
	Key apiText `json:"key" doc:"a string, or {\"base64\": \"...\"}"`
}

// A bitJSON is a bit of a key.
type bitJSON struct {
	At  uint64 `json:"at" doc:"counted from the layer's first bit"`
	Set bool   `json:"set"`
}

// A placeJSON is where a key's bits lie in a layer.
type placeJSON struct {
	Found bool      `json:"found" doc:"all its bits are set"`
	Block *uint64   `json:"block,omitempty" doc:"the block of 512 bytes; missing in a filter of RedisBloom's kind"`
	Lines []int     `json:"lines,omitempty" doc:"the two 64-byte lines of the block"`
	Bits  []bitJSON `json:"bits"`
}

// A verdictJSON is what a filter says about a key.
type verdictJSON struct {
	Found  bool        `json:"found" doc:"false: it was certainly never added"`
	Hidden bool        `json:"hidden,omitempty" doc:"the filter is keyed, and the read password does not show where its keys lie; or it is on other machines, or of the kind counting or cuckoo"`
	Hash   []string    `json:"hash,omitempty" doc:"hexadecimal: one number, or two in a filter of RedisBloom's kind"`
	Layers []placeJSON `json:"layers,omitempty" doc:"oldest first"`
}

// testKey looks a key up and says why the answer is what it is. Where the keys of a keyed
// filter lie is a secret: who knows it can craft keys that look seen.
func testKey(q *apiRequest) (any, error) {
	key := q.sent.(*keyJSON).Key
	if key == nil {
		return nil, refusal(http.StatusBadRequest, `send a key, as {"key": "..."}`)
	}
	filter, info, err := q.open()
	if err != nil {
		return nil, err
	}
	name := "BF.EXISTS"
	if info.Kind == store.Cuckoo {
		name = "CF.EXISTS"
	}
	reply, err := q.command([]byte(name), q.name, key)
	if err != nil {
		return nil, err
	}
	verdict := verdictJSON{Found: isTrue(reply)}
	shown, ok := filter.(store.Inspector)
	if verdict.Hidden = !ok || !info.Public && q.access < accessFull; verdict.Hidden {
		return verdict, nil
	}
	place, err := shown.Place(key)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		verdict.Hidden = true
		return verdict, nil
	case err != nil:
		return nil, storeRefusal(err)
	}
	for _, hash := range place.Hash {
		verdict.Hash = append(verdict.Hash, strconv.FormatUint(hash, 16))
	}
	for _, in := range place.Layers {
		layer := placeJSON{Found: true, Lines: in.Lines, Bits: []bitJSON{}}
		if in.Lines != nil {
			layer.Block = &in.Block
		}
		for _, bit := range in.Bits {
			layer.Bits = append(layer.Bits, bitJSON(bit))
			layer.Found = layer.Found && bit.Set
		}
		verdict.Layers = append(verdict.Layers, layer)
	}
	return verdict, nil
}

type renameJSON struct {
	To      apiText `json:"to" doc:"the new name"`
	Replace bool    `json:"replace,omitempty" doc:"even if something has that name, which is then deleted"`
}

func renameFilter(q *apiRequest) (any, error) {
	sent := q.sent.(*renameJSON)
	if sent.To == nil {
		return nil, refusal(http.StatusBadRequest, `send the new name, as {"to": "..."}`)
	}
	if _, _, err := q.open(); err != nil {
		return nil, err
	}
	if sent.Replace {
		return q.done([]byte("RENAME"), q.name, sent.To)
	}
	reply, err := q.command([]byte("RENAMENX"), q.name, sent.To)
	if err == nil && !isTrue(reply) {
		err = refusal(http.StatusConflict, "something has the new name already")
	}
	return doneJSON{true}, err
}

type swapJSON struct {
	With apiText `json:"with" doc:"the name of the other filter"`
}

func swapFilter(q *apiRequest) (any, error) {
	sent := q.sent.(*swapJSON)
	if sent.With == nil {
		return nil, refusal(http.StatusBadRequest, `send the other name, as {"with": "..."}`)
	}
	return q.done([]byte("BF.SWAP"), q.name, sent.With)
}

type foldJSON struct {
	By uint64 `json:"by" doc:"the factor by which the filter becomes smaller"`
}

func foldFilter(q *apiRequest) (any, error) {
	return q.done([]byte("BF.FOLD"), q.name, strconv.AppendUint(nil, q.sent.(*foldJSON).By, 10))
}

type mergeJSON struct {
	From []apiText `json:"from" doc:"the names of the filters whose keys are added"`
}

func mergeFilter(q *apiRequest) (any, error) {
	sent := q.sent.(*mergeJSON)
	if len(sent.From) == 0 || len(sent.From) > httpKeys {
		return nil, refusal(http.StatusBadRequest, `send names, as {"from": ["..."]}, at most %d`, httpKeys)
	}
	args := [][]byte{[]byte("BF.MERGE"), q.name}
	for _, name := range sent.From {
		args = append(args, name)
	}
	return q.done(args...)
}

type expireJSON struct {
	Seconds *float64 `json:"seconds" doc:"from now; null: the name never expires"`
}

func expireFilter(q *apiRequest) (any, error) {
	if _, _, err := q.open(); err != nil {
		return nil, err
	}
	sent := q.sent.(*expireJSON)
	if sent.Seconds == nil {
		return q.done([]byte("PERSIST"), q.name)
	}
	ms := *sent.Seconds * 1000
	if !(ms >= 1 && ms < math.MaxInt64/4) {
		return nil, refusal(http.StatusBadRequest, "seconds is a number above 0, or null")
	}
	reply, err := q.command([]byte("PEXPIRE"), q.name, strconv.AppendInt(nil, int64(ms), 10))
	if err == nil && !isTrue(reply) {
		err = storeRefusal(store.ErrNotFound)
	}
	return doneJSON{true}, err
}

// takeSnapshot begins a snapshot, as BGSAVE.
func takeSnapshot(q *apiRequest) (any, error) { return q.done([]byte("BGSAVE")) }
