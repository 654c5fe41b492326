package main

import (
	"fmt"

	"github.com/bloomery/bloom"
)

func overhead() {
	head("rate", "textbook bits per key", "bits per key", "more")
	for _, p := range rates {
		least, ours := bloom.ClassicBitsPerKey(p), mustPlan(p).BitsPerKey()
		row(name(p), fmt.Sprintf("%.2f", least), fmt.Sprintf("%.2f", ours), fmt.Sprintf("+%.1f%%", 100*(ours/least-1)))
	}
}

func textbook() {
	head(rateTitles("")...)
	perKey, ideal, whole := []string{"bits per key, `log2(1/p) / ln 2`"}, []string{"best k, `log2(1/p)`"}, []string{"bits per key with k whole"}
	for _, p := range rates {
		c, k := leastSpace(p, 30, textbookRate)
		perKey = append(perKey, fmt.Sprintf("%.2f", bloom.ClassicBitsPerKey(p)))
		ideal = append(ideal, fmt.Sprintf("%.2f", bloom.ClassicBitsPerKey(p)*ln2))
		whole = append(whole, fmt.Sprintf("%.2f (k = %d)", c, k))
	}
	row(perKey...)
	row(ideal...)
	row(whole...)
}
