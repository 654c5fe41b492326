package server

import (
	"slices"
	"strings"
	"sync"
)

// databases is how many SELECT knows, as many as a Redis of default settings.
const databases = 16

// The store has one set of names. A name in database 0 is kept as it is, one in
// another database behind three bytes: NUL, the number as a hexadecimal digit, and
// a colon. So database 0, which is all that most clients ever see, costs nothing;
// and whoever sends such bytes there reaches into another database, which is no
// secret: databases keep names apart, not users.
const scopeBytes = 3

func scopedName(db int, key []byte) []byte {
	if db == 0 {
		return key
	}
	return append([]byte{0, "0123456789abcdef"[db], ':'}, key...)
}

// splitName takes apart what scopedName has made.
func splitName(name string) (db int, key string) {
	if len(name) >= scopeBytes && name[0] == 0 && name[2] == ':' {
		if db := strings.IndexByte("0123456789abcdef", name[1]); db > 0 {
			return db, name[scopeBytes:]
		}
	}
	return 0, name
}

// scope returns the arguments of a command with its keys as the store knows them.
func (c *Client) scope(cmd *Command, args [][]byte) [][]byte {
	if c.db == 0 || cmd.FirstKey == 0 {
		return args
	}
	scoped := append([][]byte(nil), args...)
	last := cmd.LastKey
	if last < 0 {
		last += len(args)
	}
	for i := cmd.FirstKey; i <= last && i < len(args); i += max(cmd.KeyStep, 1) {
		scoped[i] = scopedName(c.db, args[i])
	}
	return scoped
}

// scopes knows whether there are names in other databases than 0. As long as
// there are none, the store's count is that of database 0.
type scopes struct {
	mu    sync.Mutex
	known bool // used is right
	used  bool // a client has chosen another database, or a name is in one
}

// use notes that a client has chosen another database than 0.
func (d *scopes) use() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.used = true, true
}

// scoped reports whether there can be names in other databases than 0. The first
// question may take a look at all names.
func (s *Server) scoped() bool {
	s.scopes.mu.Lock()
	defer s.scopes.mu.Unlock()
	if !s.scopes.known {
		s.scopes.known = true
		for name := range s.allNames {
			if db, _ := splitName(name); db != 0 {
				s.scopes.used = true
				break
			}
		}
	}
	return s.scopes.used
}

// list is the store's List, and nameCount its Len, without what long commands are
// making; see makeAside.
func (s *Server) list(cursor uint64, count int) (names []string, next uint64) {
	names, next = s.store.List(cursor, count)
	return slices.DeleteFunc(names, isAside), next
}

func (s *Server) nameCount() int { return max(s.store.Len()-int(s.aside.Load()), 0) }

// allNames calls yield with the names of the store, of all databases, until it is
// false. A name that is there all the while comes once or more.
func (s *Server) allNames(yield func(name string) bool) {
	for cursor := uint64(0); ; {
		names, next := s.list(cursor, 1000)
		for _, name := range names {
			if !yield(name) {
				return
			}
		}
		if next == 0 {
			return
		}
		cursor = next
	}
}

// keysIn returns the names of the store in each database.
func (s *Server) keysIn() (count [databases]int) {
	if !s.scoped() {
		count[0] = s.nameCount()
		return count
	}
	for name := range s.allNames {
		db, _ := splitName(name)
		count[db]++
	}
	return count
}
