package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"maps"
)

// needed are the settings of each server without which it loses filters, and what
// happens otherwise.
var needed = []struct{ name, value, otherwise string }{
	{"maxmemory-policy", "noeviction", "a server that is short of memory deletes chunks"},
	{"appendonly", "yes", "a server that restarts has lost its chunks, and its replica copies that"},
}

// checkSettings asks every server for its settings. The error has the command that
// mends each.
func (s *Store) checkSettings(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	var wrong []string
	nodes := s.client.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		names := []string{}
		for _, setting := range needed {
			names = append(names, setting.name)
		}
		values, err := nodes[address].Do(ctx, nodes[address].B().ConfigGet().Parameter(names...).Build()).AsStrMap()
		if err != nil {
			return fmt.Errorf("%w: %s does not tell its settings (%w): allow its user CONFIG GET, or say that the servers are trusted", ErrSettings, address, err)
		}
		for _, setting := range needed {
			if got := values[setting.name]; got != setting.value {
				wrong = append(wrong, fmt.Sprintf("%s has %s %s, so %s: send it CONFIG SET %s %s, and CONFIG REWRITE", address, setting.name, got, setting.otherwise, setting.name, setting.value))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSettings, strings.Join(wrong, "; "))
}
