package store_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/bloomery/bloom/store"
)

// TestRandomIsUniform tests Random by chi-square. It used to favour names that were alone
// in their shards, and names after empty slots. Few names are counted; many are found by
// trying.
func TestRandomIsUniform(t *testing.T) {
	for _, tt := range []struct{ names, deleted, draws int }{
		{names: 1, draws: 10},
		{names: 7, draws: 2000},
		{names: 20_000, draws: 400_000},
		{names: 20_000, deleted: 19_990, draws: 2000},
	} {
		t.Run(fmt.Sprintf("%d names less %d", tt.names, tt.deleted), func(t *testing.T) {
			st := open(t, store.LocalConfig{})
			if name, ok := st.Random(); ok {
				t.Fatalf("Random of an empty store = %q", name)
			}
			for i := range tt.names {
				if err := st.Set(t.Context(), fmt.Sprint("name", i), []byte("value")); err != nil {
					t.Fatal(err)
				}
			}
			for i := range tt.deleted {
				if _, err := st.Drop(t.Context(), fmt.Sprint("name", i)); err != nil {
					t.Fatal(err)
				}
			}
			drawn := map[string]int{}
			for range tt.draws {
				name, ok := st.Random()
				if kind, _, _ := st.Kind([]byte(name)); !ok || kind != store.String {
					t.Fatalf("Random = %q, %v", name, ok)
				}
				drawn[name]++
			}
			left := tt.names - tt.deleted
			want, chi := float64(tt.draws)/float64(left), 0.0
			for i := tt.deleted; i < tt.names; i++ {
				off := float64(drawn[fmt.Sprint("name", i)]) - want
				chi += off * off / want
			}
			freedom := float64(left - 1) // the mean of chi-square; its variance is twice that
			if sigmas := (chi - freedom) / max(math.Sqrt(2*freedom), 1); sigmas > 6 {
				t.Errorf("chi-square %.0f with %.0f degrees of freedom: %.1f sigmas", chi, freedom, sigmas)
			}
		})
	}
}
