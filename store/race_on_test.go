//go:build race

package store

const RaceDetector = true // everything is ten times as slow
