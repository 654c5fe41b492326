package store

import "context"

// What a [Store] may be able to do besides, and a server asks for by type assertion:
// it does without where a store cannot. [Local] can do all of it.

// A Statistician counts what it does to make adds durable.
type Statistician interface {
	Stats() Stats
}

// A Snapshotter writes all it holds next to its log.
type Snapshotter interface {
	Statistician
	Snapshot(ctx context.Context) error
}

// A Stopper reports, at once, that it can make nothing durable any more; see
// [Local.OnStop].
type Stopper interface {
	OnStop(do func(err error))
}

// A Grantor counts memory that the server needs for a while against its limit; see
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

// A Randomizer picks a name, each with the same chance, and reports false if there is
// none.
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
