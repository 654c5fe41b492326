//go:build !race

package classic_test

const raceEnabled = false
