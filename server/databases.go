package server

import (
	"slices"
	"strings"

	"github.com/bloomery/bloom/store"
)

// databases is the number of databases, that of Redis by default.
const databases = store.Groups

// The store has one set of names. A name in database 0 is stored as it is; in any other
// database it is prefixed with three bytes: NUL, the number as a hexadecimal digit, and
// a colon. So database 0, the only one that most clients ever use, costs nothing. A
// client that sends such a prefix in database 0 reaches into another database. That is
// no leak: databases separate names, not users.
const scopeBytes = 3

func scopedName(db int, key []byte) []byte {
	if db == 0 {
		return key
	}
	return append([]byte{0, "0123456789abcdef"[db], ':'}, key...)
}

// splitName undoes scopedName.
func splitName(name string) (db int, key string) {
	if len(name) >= scopeBytes && name[0] == 0 && name[2] == ':' {
		if db := strings.IndexByte("0123456789abcdef", name[1]); db > 0 {
			return db, name[scopeBytes:]
		}
	}
	return 0, name
}

// scope returns the arguments of a command, with the keys as they are named in the
// store.
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

// list is the store's List, and nameCount its Len, without the filters that long
// commands are making; see makeAside.
func (s *Server) list(cursor uint64, count int) (names []string, next uint64, err error) {
	names, next, err = s.store.List(cursor, count)
	return slices.DeleteFunc(names, isAside), next, err
}

// nameCount is zero if the store does not answer.
func (s *Server) nameCount() int {
	n, _ := s.store.Len()
	return max(n-int(s.aside.Load()), 0)
}

// eachName calls yield with the names of the store, of all databases, until it returns
// false. A name that exists throughout comes at least once.
func (s *Server) eachName(yield func(name string) bool) error {
	for cursor := uint64(0); ; {
		names, next, err := s.list(cursor, 1000)
		for _, name := range names {
			if !yield(name) {
				return nil
			}
		}
		if next == 0 || err != nil {
			return err
		}
		cursor = next
	}
}

// allNames is eachName for a caller that can do nothing about an error.
func (s *Server) allNames(yield func(name string) bool) { s.eachName(yield) }

// allNames is eachName for a command, which fails if there is an error.
func (c *Client) allNames(yield func(name string) bool) {
	if err := c.server.eachName(yield); err != nil {
		c.failed = err
	}
}

// groupNames makes the store count the names of each database, if it can.
func (s *Server) groupNames() {
	if st, ok := s.store.(store.Grouper); ok {
		st.GroupNames(func(name string) int {
			db, _ := splitName(name)
			return db
		})
	}
}

// keysIn returns the number of names in each database. If the store does not count
// them, it lists them all.
func (s *Server) keysIn() (count [databases]int, err error) {
	if st, ok := s.store.(store.Grouper); ok {
		for db := range count {
			count[db] = st.LenOf(db)
		}
		count[0] = max(count[0]-int(s.aside.Load()), 0)
		return count, nil
	}
	err = s.eachName(func(name string) bool {
		db, _ := splitName(name)
		count[db]++
		return true
	})
	return count, err
}

// scoped reports whether any database other than but has names.
func (s *Server) scoped(but int) (bool, error) {
	count, err := s.keysIn()
	for db, n := range count {
		if n > 0 && db != but {
			return true, err
		}
	}
	return false, err
}
