package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/store"
	"github.com/redis/rueidis"
)

// The directory of names: one hash, so that every change of names is one script, atomic
// for all.

// openDirectory reads the store's identity, or makes one for a new store.
func (s *Store) openDirectory(ctx context.Context) error {
	b := s.client.B
	read := []rueidis.Completed{b().Hget().Key(s.keys.names).Field(idField).Build()}
	for i := range idCopies {
		read = append(read, b().Get().Key(s.keys.id(i)).Build())
	}
	_, replies := s.do(ctx, nil, read...)
	copies := 0
	for i, reply := range replies {
		text, err := reply.ToString()
		switch {
		case rueidis.IsRedisNil(err):
		case err != nil:
			return explain(err)
		case i == 0:
			s.id = text
		case s.id == "" || text != s.id:
			return fmt.Errorf("%w: the directory %s was lost, as when a server has started without its data: bring that data back, or give up what the store had, delete the keys %sid:*, and start again", ErrDamaged, s.keys.names, s.keys.prefix)
		default:
			copies++
		}
	}
	if s.id == "" {
		begin := b().Hsetnx().Key(s.keys.names).Field(idField).Value(newEpoch().String()).Build()
		if _, replies := s.do(ctx, nil, begin); replies[0].Error() != nil {
			return explain(replies[0].Error())
		}
		id, err := s.ask(ctx, b().Hget().Key(s.keys.names).Field(idField).Build()).ToString() // that of the first store
		if err != nil {
			return explain(err)
		}
		s.id = id
	}
	if copies == idCopies {
		return nil
	}
	var write []rueidis.Completed
	for i := range idCopies {
		write = append(write, b().Set().Key(s.keys.id(i)).Value(s.id).Build())
	}
	_, replies = s.do(ctx, nil, write...)
	return firstError(replies)
}

// openSecret reads the secret, or makes it.
func (s *Store) openSecret(ctx context.Context) error {
	secret := make([]byte, bloom.SecretBytes)
	rand.Read(secret)
	key := s.keys.secret()
	_, replies := s.do(ctx, nil,
		s.client.B().Setnx().Key(key).Value(rueidis.BinaryString(secret)).Build(),
		s.client.B().Get().Key(key).Build())
	if err := replies[0].Error(); err != nil {
		return explain(err)
	}
	text, err := replies[1].ToString()
	if err != nil {
		return explain(err)
	}
	if len(text) != bloom.SecretBytes {
		return fmt.Errorf("%w: %s holds %d bytes, not a secret of %d", ErrDamaged, key, len(text), bloom.SecretBytes)
	}
	s.secret = []byte(text)
	return nil
}

// Kind returns what the name stands for.
func (s *Store) Kind(name []byte) (store.Kind, time.Time, error) {
	err := s.call(s.ctx, s.named(findScript, field(string(name)))).Error()
	if rueidis.IsRedisNil(err) {
		return store.None, time.Time{}, nil
	} else if err != nil {
		return store.None, time.Time{}, explain(err)
	}
	return store.Paired, time.Time{}, nil
}

// Rename renames a filter.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	s.naming.Lock()
	defer s.naming.Unlock()
	epochs, err := s.call(ctx, s.named(renameScript, field(from), field(to))).AsStrSlice()
	if rueidis.IsRedisNil(err) {
		return store.ErrNotFound
	} else if err != nil {
		return explain(err)
	}
	if from == to || len(epochs) != 2 {
		return nil
	}
	s.mu.Lock()
	f, replaced := s.opened[from], s.opened[to]
	delete(s.opened, from)
	delete(s.opened, to)
	if f != nil && f.epoch.String() == epochs[0] {
		f.setName(to)
		s.opened[to] = f
	}
	s.mu.Unlock()
	if replaced != nil {
		replaced.gone.Store(true)
	}
	return s.freeAll(ctx, epochs[1:])
}

// Swap exchanges the filters of two names.
func (s *Store) Swap(ctx context.Context, a, b string) error {
	s.naming.Lock()
	defer s.naming.Unlock()
	err := s.call(ctx, s.named(swapScript, field(a), field(b))).Error()
	if rueidis.IsRedisNil(err) {
		return store.ErrNotFound
	} else if err != nil {
		return explain(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ofA, ofB := s.opened[a], s.opened[b]
	delete(s.opened, a)
	delete(s.opened, b)
	if ofA != nil {
		ofA.setName(b)
		s.opened[b] = ofA
	}
	if ofB != nil {
		ofB.setName(a)
		s.opened[a] = ofB
	}
	return nil
}

// Drop deletes the names. The memory is released in the background.
func (s *Store) Drop(ctx context.Context, names ...string) (int, error) {
	if len(names) == 0 {
		return 0, nil
	}
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = field(name)
	}
	epochs, err := s.end(ctx, s.named(dropScript, fields...))
	return len(epochs), err
}

// Clear deletes all names.
func (s *Store) Clear(ctx context.Context) error {
	_, err := s.end(ctx, s.named(clearScript))
	return err
}

// end calls a script that removes names and returns their epochs.
func (s *Store) end(ctx context.Context, c call) ([]string, error) {
	s.naming.Lock()
	defer s.naming.Unlock()
	epochs, err := s.call(ctx, c).AsStrSlice()
	if err != nil {
		return nil, explain(err)
	}
	ended := map[string]bool{}
	for _, e := range epochs {
		ended[e] = true
	}
	s.mu.Lock()
	for name, f := range s.opened {
		if ended[f.epoch.String()] {
			f.gone.Store(true)
			delete(s.opened, name)
		}
	}
	s.mu.Unlock()
	return epochs, s.freeAll(ctx, epochs)
}

// freeAll frees filters that have no name any more.
func (s *Store) freeAll(ctx context.Context, epochs []string) error {
	for _, text := range epochs {
		if text == "" {
			continue
		}
		e, err := parseEpoch(text)
		if err != nil {
			return err
		}
		f, err := s.read(ctx, "", e)
		if errors.Is(err, ErrDamaged) || errors.Is(err, bloom.ErrSecret) {
			continue // fsck finds its chunks
		} else if err != nil {
			return err
		}
		s.free(e, f.shape)
	}
	return nil
}

// free deletes a filter's metadata and, in the background, its chunks.
func (s *Store) free(e epoch, shape shape) {
	s.work.Go(func() {
		commands := []rueidis.Completed{
			s.client.B().Unlink().Key(s.keys.meta(e)).Build(),
			s.client.B().Unlink().Key(s.keys.noteOf(e)).Build(),
		}
		for i := range shape.chunks() {
			commands = append(commands, s.client.B().Unlink().Key(s.keys.chunk(e, i)).Build())
			if len(commands) == pipelined {
				s.do(s.ctx, nil, commands...) // what is left by an error, fsck finds
				commands = commands[:0]
			}
		}
		s.do(s.ctx, nil, commands...)
	})
}

// pipelined is the number of large commands that are under way at a time.
const pipelined = 128

// List returns some names.
func (s *Store) List(cursor uint64, count int) (names []string, next uint64, err error) {
	next = cursor
	for {
		entry, err := s.call(s.ctx, s.named(listScript, strconv.FormatUint(next, 10), strconv.Itoa(count))).AsScanEntry()
		if err != nil {
			return nil, 0, explain(err)
		}
		for i := 0; i < len(entry.Elements); i += 2 {
			if name, ok := strings.CutPrefix(entry.Elements[i], field("")); ok {
				names = append(names, name)
			}
		}
		if next = entry.Cursor; next == 0 || len(names) >= count {
			return names, next, nil
		}
	}
}

// Len returns the number of names.
func (s *Store) Len() (int, error) {
	n, err := s.call(s.ctx, s.named(lenScript)).AsInt64()
	return int(n), explain(err)
}
