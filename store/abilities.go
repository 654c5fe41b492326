package store

import "context"

// Optional abilities of a [Store]. A server asks for them by type assertion, and
// manages without those that a store lacks. [Local] has all of them but Remote.

// A Statistician counts the work it does to make adds durable.
type Statistician interface {
	Stats() Stats
}

// A Snapshotter can write all its values to a snapshot, which replaces the log before it.
type Snapshotter interface {
	Statistician
	Snapshot(ctx context.Context) error
}

// A Stopper reports, at once, that it can no longer make anything durable; see
// [Local.OnStop].
type Stopper interface {
	OnStop(do func(err error))
}

// A Grantor charges memory that the server needs temporarily to the store's limit; see
// [Local.Grant]. The error of Grant wraps [ErrMemory].
type Grantor interface {
	Grant(bytes uint64) error
	Release(bytes uint64)
}

// A Grouper counts names by group; see [Local.GroupNames].
type Grouper interface {
	GroupNames(of func(name string) (group int))
	LenOf(group int) int
}

// A Remote store keeps its filters elsewhere, and its calls wait for a network. A server
// gives each connection a goroutine of its own, so that they wait at the same time.
type Remote interface {
	Remote()
}

// A Randomizer picks a name, each with the same probability, and returns false if there
// are no names.
type Randomizer interface {
	Random() (name string, ok bool)
}

var _ interface {
	Store
	Snapshotter
	Stopper
	Grantor
	Grouper
	Randomizer
} = (*Local)(nil)
