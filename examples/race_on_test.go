//go:build race

package examples_test

const raceEnabled = true // the programs are built with the race detector, too
