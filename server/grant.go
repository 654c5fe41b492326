package server

// grantor is a store with a ceiling to its memory, which counts what the server takes
// for a moment, too: a copy of a filter that is written, or read, in one piece.
type grantor interface {
	// Grant takes so many bytes, or returns an error that wraps store.ErrMemory.
	// Release gives them back.
	Grant(bytes uint64) error
	Release(bytes uint64)
}

// grants are the store's Grant and Release, nil where it has none.
func (s *Server) grants() (grant func(bytes uint64) error, release func(bytes uint64)) {
	if g, ok := s.store.(grantor); ok {
		return g.Grant, g.Release
	}
	return nil, nil
}
