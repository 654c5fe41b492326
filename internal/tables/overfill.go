package main

import "fmt"

// overfill shows what happens to filters with more or fewer keys than planned.
func overfill() {
	titles := []string{"planned p"}
	loads := []float64{0.5, 1, 1.5, 2, 3, 5, 10}
	for _, load := range loads {
		titles = append(titles, fmt.Sprintf("%g n", load))
	}
	head(titles...)
	for _, p := range rates {
		plan := mustPlan(p)
		cells := []string{name(p)}
		for _, load := range loads {
			cells = append(cells, fmt.Sprintf("%.2g", plan.RateAt(uint64(load*manyKeys))))
		}
		row(cells...)
	}
}
