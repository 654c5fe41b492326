//go:build race

package redisbloom_test

const raceEnabled = true // the race detector's pools drop what is put into them
