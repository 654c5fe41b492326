//go:build !race

package server

// The race detector would compile all of go-redis for one client on one connection.

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestGoRedis uses unmodified go-redis, through its calls for Bloom filters.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{0, 2, 3} { // 0: the client's own choice
		t.Run(fmt.Sprintf("protocol %d", protocol), func(t *testing.T) {
			ctx := t.Context()
			client := redis.NewClient(&redis.Options{Addr: startServer(t, Config{}), Protocol: protocol})
			defer client.Close()
			want := func(what string, got, want any, err error) {
				t.Helper()
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
				}
			}
			ok, err := client.BFReserve(ctx, "r", 0.001, 2000).Result()
			want("BFReserve", ok, "OK", err)
			ok, err = client.BFReserveExpansion(ctx, "e", 0.001, 2000, 3).Result()
			want("BFReserveExpansion", ok, "OK", err)
			ok, err = client.BFReserveNonScaling(ctx, "n", 0.001, 2000).Result()
			want("BFReserveNonScaling", ok, "OK", err)
			ok, err = client.BFReserveWithArgs(ctx, "w", &redis.BFReserveOptions{Capacity: 2000, Error: 0.001, Expansion: 3}).Result()
			want("BFReserveWithArgs", ok, "OK", err)
			yes, err := client.BFAdd(ctx, "r", "a").Result()
			want("BFAdd", yes, true, err)
			yes, err = client.BFExists(ctx, "r", "a").Result()
			want("BFExists", yes, true, err)
			yes, err = client.BFExists(ctx, "nothing", "a").Result()
			want("BFExists of nothing", yes, false, err)
			all, err := client.BFMAdd(ctx, "r", "a", "b", "c").Result()
			want("BFMAdd", all, []bool{false, true, true}, err)
			all, err = client.BFMExists(ctx, "r", "a", "b", "z").Result()
			want("BFMExists", all, []bool{true, true, false}, err)
			all, err = client.BFInsert(ctx, "i", &redis.BFInsertOptions{Capacity: 2000, Error: 0.001, Expansion: 3}, "a", "b", "a").Result()
			want("BFInsert", all, []bool{true, true, false}, err)
			n, err := client.BFCard(ctx, "r").Result()
			want("BFCard", n, 3, err)
			info, err := client.BFInfo(ctx, "r").Result()
			want("BFInfo", info, redis.BFInfo{Capacity: 2000, Size: 4056, Filters: 1, ItemsInserted: 3, ExpansionRate: 2}, err)
			info, err = client.BFInfoCapacity(ctx, "r").Result()
			want("BFInfoCapacity", info.Capacity, 2000, err)
			info, err = client.BFInfoSize(ctx, "r").Result()
			want("BFInfoSize", info.Size, 4056, err)
			info, err = client.BFInfoFilters(ctx, "r").Result()
			want("BFInfoFilters", info.Filters, 1, err)
			info, err = client.BFInfoItems(ctx, "r").Result()
			want("BFInfoItems", info.ItemsInserted, 3, err)
			info, err = client.BFInfoExpansion(ctx, "e").Result()
			want("BFInfoExpansion", info.ExpansionRate, 3, err)

			// A dump goes over to another name.
			for iterator := int64(0); ; {
				dump, err := client.BFScanDump(ctx, "r", iterator).Result()
				if err != nil {
					t.Fatal(err)
				}
				if iterator = dump.Iter; iterator == 0 {
					break
				}
				ok, err := client.BFLoadChunk(ctx, "copy", iterator, dump.Data).Result()
				want("BFLoadChunk", ok, "OK", err)
			}
			yes, err = client.BFExists(ctx, "copy", "b").Result()
			want("BFExists of the copy", yes, true, err)

			// Pipelines, transactions, and the rest that programs use.
			commands, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range 1000 {
					p.BFAdd(ctx, "r", fmt.Sprint("item", i))
				}
				return nil
			})
			want("Pipelined", len(commands), 1000, err)
			commands, err = client.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.BFAdd(ctx, "r", "tx")
				p.BFExists(ctx, "r", "tx")
				return nil
			})
			want("TxPipelined", commands[1].(*redis.BoolCmd).Val(), true, err)
			err = client.Watch(ctx, func(tx *redis.Tx) error {
				client.BFAdd(ctx, "r", "meanwhile")
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.BFAdd(ctx, "r", "never").Err() })
				return err
			}, "r")
			if !errors.Is(err, redis.TxFailedErr) {
				t.Errorf("Watch: got %v, want %v", err, redis.TxFailedErr)
			}
			keys, err := client.Keys(ctx, "*").Result()
			slices.Sort(keys)
			want("Keys", keys, []string{"copy", "e", "i", "n", "r", "w"}, err)
			kind, err := client.Type(ctx, "r").Result()
			want("Type", kind, "MBbloom--", err)
			var scanned []string
			for iterator := client.Scan(ctx, 0, "*", 2).Iterator(); iterator.Next(ctx); {
				scanned = append(scanned, iterator.Val())
			}
			slices.Sort(scanned)
			want("Scan", slices.Compact(scanned), keys, nil)
			documents, err := client.Command(ctx).Result()
			want("Command", documents["bf.add"].FirstKeyPos, 1, err)
			dump, err := client.Dump(ctx, "r").Result()
			want("Dump", len(dump) > 100, true, err)
			ok, err = client.RestoreReplace(ctx, "e", time.Hour, dump).Result()
			want("RestoreReplace", ok, "OK", err)
			yes, err = client.BFExists(ctx, "e", "item7").Result()
			want("BFExists of what was restored", yes, true, err)
			ttl, err := client.TTL(ctx, "e").Result()
			want("TTL", ttl, time.Hour, err)
		})
	}
}

// TestGoRedisCuckoo uses its calls for cuckoo filters.
func TestGoRedisCuckoo(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("protocol %d", protocol), func(t *testing.T) {
			ctx := t.Context()
			client := redis.NewClient(&redis.Options{Addr: startServer(t, Config{}), Protocol: protocol})
			defer client.Close()
			want := func(what string, got, want any, err error) {
				t.Helper()
				if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
				}
			}
			ok, err := client.CFReserve(ctx, "r", 1000).Result()
			want("CFReserve", ok, "OK", err)
			ok, err = client.CFReserveExpansion(ctx, "e", 1000, 2).Result()
			want("CFReserveExpansion", ok, "OK", err)
			ok, err = client.CFReserveBucketSize(ctx, "b", 1000, 4).Result()
			want("CFReserveBucketSize", ok, "OK", err)
			ok, err = client.CFReserveMaxIterations(ctx, "m", 1000, 30).Result()
			want("CFReserveMaxIterations", ok, "OK", err)
			ok, err = client.CFReserveWithArgs(ctx, "w", &redis.CFReserveOptions{Capacity: 1000, BucketSize: 4, MaxIterations: 30, Expansion: 2}).Result()
			want("CFReserveWithArgs", ok, "OK", err)
			yes, err := client.CFAdd(ctx, "w", "a").Result()
			want("CFAdd", yes, true, err)
			yes, err = client.CFAddNX(ctx, "w", "a").Result()
			want("CFAddNX", yes, false, err)
			yes, err = client.CFAdd(ctx, "w", "a").Result()
			want("CFAdd again", yes, true, err)
			n, err := client.CFCount(ctx, "w", "a").Result()
			want("CFCount", n, 2, err)
			yes, err = client.CFDel(ctx, "w", "a").Result()
			want("CFDel", yes, true, err)
			yes, err = client.CFDel(ctx, "w", "z").Result()
			want("CFDel of nothing", yes, false, err)
			yes, err = client.CFExists(ctx, "w", "a").Result()
			want("CFExists", yes, true, err)
			all, err := client.CFInsert(ctx, "w", &redis.CFInsertOptions{Capacity: 100, NoCreate: true}, "b", "c").Result()
			want("CFInsert", all, []bool{true, true}, err)
			numbers, err := client.CFInsertNX(ctx, "w", nil, "c", "d").Result()
			want("CFInsertNX", numbers, []int64{0, 1}, err)
			all, err = client.CFMExists(ctx, "w", "b", "d", "z").Result()
			want("CFMExists", all, []bool{true, true, false}, err)
			info, err := client.CFInfo(ctx, "w").Result()
			want("CFInfo", info, redis.CFInfo{Size: 1080, NumBuckets: 256, NumFilters: 1, NumItemsInserted: 4, NumItemsDeleted: 1,
				BucketSize: 4, ExpansionRate: 2, MaxIteration: 30}, err)
			for iterator := int64(0); ; {
				dump, err := client.CFScanDump(ctx, "w", iterator).Result()
				if errors.Is(err, redis.Nil) || err == nil && dump.Iter == 0 { // it does not expect null, RedisBloom's end
					break
				} else if err != nil {
					t.Fatal(err)
				}
				iterator = dump.Iter
				ok, err := client.CFLoadChunk(ctx, "copy", iterator, dump.Data).Result()
				want("CFLoadChunk", ok, "OK", err)
			}
			info, err = client.CFInfo(ctx, "copy").Result()
			want("CFInfo of the copy", info.NumItemsInserted, 4, err)
			yes, err = client.CFExists(ctx, "copy", "d").Result()
			want("CFExists of the copy", yes, true, err)
			commands, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range 1000 {
					p.CFAdd(ctx, "e", fmt.Sprint("item", i))
				}
				return nil
			})
			want("Pipelined", len(commands), 1000, err)
			info, err = client.CFInfo(ctx, "e").Result()
			want("CFInfo after the pipeline", info.NumItemsInserted, 1000, err)
		})
	}
}
