// Package bloom answers one question, "have I seen this before?", for sets too
// large to keep.
//
// A Bloom filter keeps bits instead of keys. To add a key, hash it and set the k
// bits that the hash names; to look it up, see whether they are all set. If one
// is clear the key is certainly new. If all are set the key is probably an old
// one: other keys may have set those bits, which is a false positive. There are
// no false negatives.
//
//	seen, err := bloom.New(1_000_000, 0.001) // room for a million URLs, wrong about 1 in 1000
//	...
//	if seen.AddString(url) {
//		crawl(url) // certainly not seen before
//	}
//
// # Letters
//
// The letters are those of the literature, here and in all names and messages:
//
//	n  keys, the number of different keys that the filter is planned for
//	p  rate, the chance that a key never added is found: the false-positive rate
//	m  bits, the size of the filter
//	k  probes, the number of bits that one key sets
//
// A [Config] takes two of n, p and m and works out the rest; [Config.Plan] shows
// it without making anything, and refuses what cannot be kept.
//
// # Which type to pick
//
// [Filter] is the one: any n, any rate down to 1e-12, two cache lines per key.
// One goroutine may change it, any number may read it.
//
// The others are for when that is not enough:
//
//	many goroutines add              Shared
//	keys are removed                 Counting
//	n is not known                   Scalable
//	keys are forgotten after a time  Window
//	some false positives are known   Exceptions
//	one cache line, p above 0.3%     SplitBlock
//	another program's filter         Classic
//
// [Shared] is a Filter that many goroutines add to at once. Of those that
// race to add one key at most one is told that it is new.
//
// [Counting] has counters of four bits in the place of bits, and so four times
// the size. A key that was added can be removed.
//
// [Scalable] is a chain of filters that grows, and keeps its rate at any size,
// for about half more bits per key.
//
// [Window] is a ring of filters. It finds what was added in the last hour or
// day, and forgets what is older; its rate holds in whatever pattern keys come.
//
// [Exceptions] is a Filter with a list of keys that it is known to find by
// mistake, and which are answered no.
//
// [SplitBlock] is Apache Parquet's layout: one cache line per key, the fastest
// where p is 0.3% or more, and too large below.
//
// [Classic] is the filter of the textbooks, any m and k, under a numbered
// [Scheme]: our own, or that of another program, whose bits it sets.
//
// All have the same verbs: Add and Contains for bytes, strings, integers and
// hashes (but for a Classic under another program's scheme, which starts from the
// key), one at a time or many. Many at a time is several times faster, because
// the keys' lines are fetched from memory side by side. To fill a filter of
// gigabytes, use [Filter.Prefault] and [Filter.Bulk].
//
// # What is promised
//
// A key that was added is found: no false negative, at any size up to 2^45 bits.
//
// The rate is what was asked for. [Plan.Rate] is exact for the layout, and never
// above the rate in the Config; every kind of key shape and hash is measured
// against it.
//
// A filter tells the truth about itself: [Filter.Report] reads fill, rate and
// number of keys from the bits, not from the plan, so an over-full filter says
// so.
//
// The same keys give the same bits on every machine, and each release reads
// the files of those before it. Invalid bytes give an error, never a panic, and
// memory is taken as bytes arrive, about twice as much at most. There are two
// exceptions: a Window takes memory for the first layers of all its generations, also
// when its file has few, and [Exceptions] about a hundred bytes for each exception. [Load] and its kin
// have no limit but the length of the file; the functions that read a stream have.
//
// Adding and looking up allocate nothing. Memory that a dropped filter took is
// released in time, also that of large ones, which lies outside Go's heap; what
// [Filter.Close] adds is that it happens at once.
//
// # What is not promised
//
// The default hash, XXH3-64 with a public seed, is for keys that nobody chooses
// against you: whoever knows the filter's seed can make keys that it takes for
// old ones. For strangers' keys give Config.Secret, which turns on SipHash-2-4.
//
// A filter does not forget: no key can be removed from it, but from a Counting,
// and only a Window forgets.
//
// A filter does not hide its keys from somebody who can guess them: anyone who
// has an unkeyed filter can try keys on it.
package bloom
