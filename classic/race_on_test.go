//go:build race

package classic_test

const raceEnabled = true // the race detector's pools drop what is put into them
