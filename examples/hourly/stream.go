package main

import (
	"iter"
	"math/rand/v2"
	"time"
)

// stream returns messages that come at even intervals, perHour of them different. One
// in five is delivered a second time, up to 50 minutes after the first.
func stream(from time.Time, length time.Duration, perHour int) iter.Seq[message] {
	return func(yield func(message) bool) {
		random := rand.New(rand.NewPCG(1, 2)) // the same stream each time
		tick := time.Hour / time.Duration(perHour)
		repeats := map[int][]int{} // by tick, which messages come again
		for i := range int(length / tick) {
			if random.IntN(5) == 0 {
				later := i + 1 + random.IntN(perHour*50/60)
				repeats[later] = append(repeats[later], i)
			}
			at := from.Add(time.Duration(i) * tick)
			for _, number := range append([]int{i}, repeats[i]...) {
				if !yield(message{number, at}) {
					return
				}
			}
			delete(repeats, i)
		}
	}
}
