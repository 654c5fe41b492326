package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bloomery/bloom"
)

// A table stands for the database: slow, and what the rest protects.
type table struct {
	rows            map[string]string
	queries, misses int // misses are queries for what is not there
}

func newTable() *table {
	t := &table{rows: map[string]string{}}
	for i := range products {
		t.rows[fmt.Sprint(i)] = fmt.Sprintf("product %d", i)
	}
	return t
}

func (t *table) query(id string) (row string, found bool) {
	t.queries++
	row, found = t.rows[id]
	if !found {
		t.misses++
	}
	return row, found
}

// A shop looks products up: in the filter, then in Redis, then in the database.
type shop struct {
	known  *bloom.Shared // the ids of all products, cached or not; nil for no filter
	cache  *redis.Client
	prefix string
	table  *table

	refused, asked int
}

// guard makes the filter, from all ids in the database. Ids that happen to be cached
// would not do: the filter would refuse all others.
func (s *shop) guard() error {
	// An attacker may know this program and its hash. Without the secret they cannot work
	// out which keys the filter finds by mistake.
	secret := make([]byte, bloom.SecretBytes)
	rand.Read(secret)
	// Twice the room, for products to come. Shared, since many requests look keys up
	// while others insert products.
	known, err := bloom.Config{Keys: 2 * products, Rate: 0.001, Secret: secret}.NewShared()
	if err != nil {
		return err
	}
	for id := range s.table.rows {
		known.AddString(id)
	}
	s.known = known
	return nil
}

// product returns the product with an id.
func (s *shop) product(ctx context.Context, id string) (row string, found bool, err error) {
	// "No" is certain, so it needs no other question. "Yes" may be wrong for one in a
	// thousand invented ids, which goes on to the database and does no harm there.
	if s.known != nil && !s.known.ContainsString(id) {
		s.refused++
		return "", false, nil
	}
	s.asked++
	row, err = s.cache.Get(ctx, s.prefix+id).Result()
	if err == nil {
		return row, true, nil
	}
	if !errors.Is(err, redis.Nil) {
		return "", false, err
	}
	row, found = s.table.query(id)
	if !found {
		return "", false, nil
	}
	return row, true, s.cache.Set(ctx, s.prefix+id, row, time.Minute).Err()
}

// insert adds a product: first to the filter, then to the database. The other way round,
// requests between the two would be refused for a product that exists.
//
// A product that is deleted stays in the filter, at the price of a query when somebody
// asks for it. Make the filter again from time to time.
func (s *shop) insert(id, row string) {
	s.known.AddString(id)
	s.table.rows[id] = row
}
