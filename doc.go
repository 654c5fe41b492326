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
// # Which type to pick
//
//	you have                      you want                  type         cost
//	n keys, known beforehand      a set                     [Filter]     the least
//	many goroutines that add      one winner per new key    [Shared]     a lock per new key
//	n not known                   a set that grows          [Scalable]   about half more bits
//	an endless stream             the last hour or day      [Window]     about half more keys' room
//	keys that leave again         Remove                    [Counting]   four times the bits
//	the same, and little memory   Remove, 1 in 30 wrong     [Cuckoo]     one or two bytes per key
//	a few harmful false positives these answered no         [Exceptions] those keys in memory
//
// [ScalableCounting] is a Counting for when n is not known: it grows as a Scalable does.
// [Cuckoo] is RedisBloom's cuckoo filter, slot for slot, and reads and writes its dumps.
// Two more set the bits of other programs: [SplitBlock] is Apache Parquet's
// layout, one cache line per key, the fastest where p is 0.3% or more and too large
// below. Package classic has the filter of the textbooks, any m and k, under a
// numbered scheme of our own or of another program.
//
// All have the same verbs: Add and Contains for bytes, strings, integers and
// hashes, one key at a time or many. Many at a time is several times faster, because
// the keys' cache lines are fetched from memory side by side. [Any] is a filter of any
// kind, and [LoadAny] returns the one in a file. To fill a filter of gigabytes, use
// [Filter.Prefault] and [Filter.Bulk].
//
// Only UnmarshalBinary works on a zero filter: make one with a function named New, Load,
// Open or Read. [Filter.Share] and [Filter.Growing] turn a Filter into a Shared or a
// Scalable, and consume it.
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
// # Goroutines
//
// Any number of goroutines may read a filter of any kind at once. In a Shared, a
// Scalable or a Window many goroutines may add at the same time, and of those that race
// to add one key at most one is told that it is new. The other kinds have one writer at
// a time, and no readers meanwhile.
//
// # What is promised
//
// A key that was added is found: no false negative, at any size up to 2^45 bits.
//
// The rate is what was asked for. [Plan.Rate] is exact for the layout, and never above
// the rate in the Config; tests measure every kind,
// key shape and hash against it.
//
// Reports are true: [Filter.Report] measures fill, rate and number of keys by the bits,
// not the plan, so it shows when a filter is over-full.
//
// The same keys give the same bits on every machine, and each release reads the
// files of those before it. Invalid input returns an error. It never panics, and
// allocates about twice the bytes received at most, with two exceptions: a Window
// allocates the first layers of all its generations, and [Exceptions] about a hundred
// bytes for each exception. [Load] and the like have no limit but the length of the
// file; functions that read a stream take a limit.
//
// Adding and looking up allocate nothing. The collector releases the memory of a dropped
// filter, also that of a large one, which lies outside Go's heap; [Filter.Close]
// releases it at once.
//
// # What is not promised
//
// The default hash, XXH3-64 with a public seed, is for keys that no adversary chooses:
// anyone who knows the filter's seed can make keys that are false positives. For
// strangers' keys set Config.Secret, which selects SipHash-2-4.
//
// Keys stay: only a Counting, a ScalableCounting or a Cuckoo can remove them, and only a
// Window expires them.
//
// A filter does not hide keys that can be guessed: anyone who has an unkeyed filter can
// try keys on it.
//
// # For stores
//
// [Inside] has what only programs that embed a store of filters need, such as this
// module's server. It is not part of the API that other programs can rely on.
package bloom
