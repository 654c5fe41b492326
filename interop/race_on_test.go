//go:build race

package interop_test

const raceEnabled = true // the race detector's pools drop what is put into them
