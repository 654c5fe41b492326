// Command cacheguard puts a filter in front of a cache in Redis and a database, so that
// requests for keys that do not exist never reach either:
//
//	redis-server --port 6379 &
//	go run ./examples/cacheguard -redis 127.0.0.1:6379
//
// A cache answers what was asked before. A key that does not exist is in no cache, so
// each request for one goes through to the database ("cache penetration"), and anybody
// can invent such keys as fast as the network carries them.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"
)

const (
	products = 1_000
	requests = 3_000 // for products that exist, and as many for others
)

func main() {
	log.SetFlags(0)
	address := flag.String("redis", "127.0.0.1:6379", "the address of a Redis server; its other keys are left alone")
	flag.Parse()
	client := redis.NewClient(&redis.Options{Addr: *address})
	defer client.Close()

	plain := &shop{cache: client, prefix: prefix(), table: newTable()}
	if err := serve("without a filter", plain); err != nil {
		log.Fatal(err)
	}
	guarded := &shop{cache: client, prefix: prefix(), table: newTable()}
	if err := guarded.guard(); err != nil {
		log.Fatal(err)
	}
	if err := serve("with a filter", guarded); err != nil {
		log.Fatal(err)
	}
	guarded.insert("new", "a new product")
	_, found, err := guarded.product(context.Background(), "new")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a product inserted now is found:", found)
}

// serve sends the requests to the shop and prints who answered them.
func serve(title string, s *shop) error {
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range requests {
		id := fmt.Sprint(random.IntN(products))
		if _, found, err := s.product(ctx, id); err != nil || !found {
			return fmt.Errorf("product %s: found %v, %v: a product that exists was refused", id, found, err)
		}
		invented := fmt.Sprintf("no-such-product-%d", i)
		if _, found, err := s.product(ctx, invented); err != nil || found {
			return fmt.Errorf("product %s: found %v, %v", invented, found, err)
		}
	}
	fmt.Printf("%-17s refused by the filter %4d, asked of Redis %4d, of the database %4d (for no product %4d)\n",
		title, s.refused, s.asked, s.table.queries, s.table.misses)
	return nil
}

// prefix returns a prefix for the keys of one run in Redis.
func prefix() string { return fmt.Sprintf("cacheguard:%016x:", rand.Uint64()) }
