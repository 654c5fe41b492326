//go:build race

package store

const RaceDetector = true // everything is about ten times slower
