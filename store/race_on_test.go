//go:build race

package store_test

const raceDetector = true // everything is ten times as slow
