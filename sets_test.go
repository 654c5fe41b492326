package bloom_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
)

// setFilter is what the kinds with set operations have in common.
type setFilter[F any] interface {
	AddUint64(key uint64) bool
	ContainsUint64(key uint64) bool
	Union(F) error
	Intersect(F) error
	Difference(F) error
	Subset(F) (bool, error)
	Overlap(F) (bloom.Overlap, error)
	Clone() F
	Equal(F) bool
}

func TestSets(t *testing.T) {
	c := bloom.Config{Keys: 20_000, Rate: 0.01}
	t.Run("Filter", func(t *testing.T) { testSets(t, func() *bloom.Filter { return mustNew(t, c) }) })
	t.Run("SplitBlock", func(t *testing.T) {
		testSets(t, func() *bloom.SplitBlock {
			f, err := c.NewSplitBlock()
			if err != nil {
				t.Fatal(err)
			}
			return f
		})
	})
	t.Run("Classic", func(t *testing.T) {
		testSets(t, func() *classic.Filter {
			f, err := classic.Config{Keys: c.Keys, Rate: c.Rate, Bits: c.Bits}.New()
			if err != nil {
				t.Fatal(err)
			}
			return f
		})
	})
}

// testSets has a hold the keys 0..9999 and b the keys 6000..13999.
func testSets[F setFilter[F]](t *testing.T, empty func() F) {
	a, b, both, either := empty(), empty(), empty(), empty()
	for i := range uint64(14_000) {
		if i < 10_000 {
			a.AddUint64(i)
		}
		if i >= 6000 {
			b.AddUint64(i)
		}
		if i >= 6000 && i < 10_000 {
			both.AddUint64(i)
		}
		either.AddUint64(i)
	}
	union := a.Clone()
	if err := union.Union(b); err != nil || !union.Equal(either) {
		t.Errorf("Union is not the filter of both sets: %v", err)
	}
	intersection := a.Clone()
	if err := intersection.Intersect(b); err != nil {
		t.Fatal(err)
	}
	for name, sub := range map[string][2]F{
		"common keys in the intersection": {both, intersection},
		"the intersection in a":           {intersection, a},
		"a in the union":                  {a, union},
		"nothing in b":                    {empty(), b},
	} {
		if is, err := sub[0].Subset(sub[1]); !is || err != nil {
			t.Errorf("Subset says %v, %v of %s", is, err, name)
		}
	}
	if is, err := a.Subset(b); is || err != nil {
		t.Errorf("a has keys that b has not, and Subset says %v, %v", is, err)
	}
	o, err := a.Overlap(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		what      string
		got, want float64
	}{{"keys", o.Keys, 10_000}, {"others", o.Others, 8000}, {"union", o.Union, 14_000}, {"intersection", o.Intersection, 4000}} {
		if math.Abs(e.got-e.want) > 5*o.IntersectionError || o.IntersectionError > 300 {
			t.Errorf("about %.0f +- %.0f %s, want %.0f", e.got, o.IntersectionError, e.what, e.want)
		}
	}
	if j := o.Jaccard(); math.Abs(j-4./14) > 0.02 {
		t.Errorf("Jaccard %g, want %g", j, 4./14)
	}
	if o, err := empty().Overlap(empty()); err != nil || o.Jaccard() != 1 || o.Intersection != 0 {
		t.Errorf("two empty filters: %+v, %v", o, err)
	}
	saturated := either.Clone()
	for i := range uint64(1_000_000) {
		saturated.AddUint64(i << 20)
	}
	if o, err := a.Overlap(saturated); err != nil || !math.IsInf(o.Others, 1) || !math.IsInf(o.Union, 1) || o.Intersection != o.Keys || o.Jaccard() != 0 {
		t.Errorf("a filter and a saturated one: %+v, Jaccard %v, %v", o, o.Jaccard(), err)
	}
	if o, err := saturated.Overlap(saturated); err != nil || !math.IsInf(o.Intersection, 1) || !math.IsInf(o.IntersectionError, 1) || o.Jaccard() != 1 {
		t.Errorf("two saturated filters: %+v, Jaccard %v, %v", o, o.Jaccard(), err)
	}
	lost := 0
	difference := a.Clone()
	if err := difference.Difference(b); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(6000) {
		if !difference.ContainsUint64(i) {
			lost++
		}
	}
	for i := uint64(6000); i < 14_000; i++ {
		if difference.ContainsUint64(i) {
			t.Fatalf("key %d is in b and still found", i)
		}
	}
	if lost == 0 {
		t.Error("Difference loses no key here: its warning would be wrong")
	}
}

func TestSetsRefuseUnlike(t *testing.T) {
	f := mustNew(t, bloom.Config{Keys: 10_000, Rate: 0.01})
	before := f.Clone()
	for name, c := range map[string]bloom.Config{
		"another seed": {Keys: 10_000, Rate: 0.01, Seed: 1},
		"another k":    {Keys: 10_000, Bits: f.Plan().Bits, Probes: 16},
		"another size": {Keys: 20_000, Bits: 2 * f.Plan().Bits, Probes: f.Plan().Probes},
	} {
		g := mustNew(t, c)
		g.AddUint64(1)
		_, subset := f.Subset(g)
		_, overlap := f.Overlap(g)
		for what, err := range map[string]error{"Intersect": f.Intersect(g), "Difference": f.Difference(g), "Subset": subset, "Overlap": overlap} {
			if !errors.Is(err, bloom.ErrUnlike) {
				t.Errorf("%s with %s: %v, want ErrUnlike", what, name, err)
			}
		}
		if !f.Equal(before) {
			t.Errorf("a refused operation with %s changed the filter", name)
		}
	}
}

func TestSplitBlockFold(t *testing.T) {
	large, err := bloom.Config{Keys: 10_000, Rate: 0.001, Folds: 6}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	small, err := bloom.Config{Keys: 10_000, Bits: large.Plan().Bits / 6}.NewSplitBlock()
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5000) {
		large.AddUint64(i)
		small.AddUint64(i)
	}
	folded, err := large.Fold(6)
	if err != nil || !folded.Equal(small) {
		t.Errorf("folded by 6, the filter is not the one of that size: %v", err)
	}
	other := small.Clone()
	if err := other.Union(large); err != nil || !other.Equal(small) {
		t.Errorf("the Union with a filter six times the size: %v", err)
	}
	if _, err := large.Fold(large.Plan().Blocks * 2); !errors.Is(err, bloom.ErrConfig) {
		t.Errorf("Fold by too much: %v, want ErrConfig", err)
	}
}

// Difference of Bloom filters is not sound: the bits of the keys that are taken
// out belong to others, too.
func ExampleFilter_Difference() {
	all, _ := bloom.New(1000, 0.1)
	done, _ := bloom.New(1000, 0.1)
	for i := range 1000 {
		all.AddString(fmt.Sprint("job ", i))
		if i < 500 {
			done.AddString(fmt.Sprint("job ", i))
		}
	}
	if err := all.Difference(done); err != nil {
		panic(err)
	}
	lost := 0
	for i := 500; i < 1000; i++ { // still to do
		if !all.ContainsString(fmt.Sprint("job ", i)) {
			lost++
		}
	}
	fmt.Println(lost, "of 500 jobs that are still to do are no longer found")
	// Output: 102 of 500 jobs that are still to do are no longer found
}

// A filter that was folded for a higher rate is planned for that, and its file
// says so.
func TestReplan(t *testing.T) {
	f, err := bloom.Config{Keys: 100_000, Rate: 0.001, Folds: 4}.New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(30_000) {
		f.AddUint64(i)
	}
	small, err := f.Fold(4)
	if err != nil {
		t.Fatal(err)
	}
	if !small.Report().Overfull() {
		t.Fatal("a quarter holds 30,000 keys at the planned rate, want too many for this test")
	}
	if err := small.Replan(0.05); err != nil {
		t.Fatal(err)
	}
	r := small.Report()
	if r.Overfull() || r.Plan.Rate > 0.05 || r.Plan.Rate < 0.049 || r.Rate > 0.05 {
		t.Errorf("planned for %v, holds %.0f keys at rate %g; want up to 0.05 and room", r.Plan, r.Keys, r.Rate)
	}
	path := filepath.Join(t.TempDir(), "f.bloom")
	if err := small.Save(path); err != nil {
		t.Fatal(err)
	}
	again, err := bloom.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if again.Plan() != r.Plan {
		t.Errorf("the file says %v, want %v", again.Plan(), r.Plan)
	}
	for _, rate := range []float64{0, 1, -1} {
		if err := small.Replan(rate); !errors.Is(err, bloom.ErrConfig) || small.Plan() != r.Plan {
			t.Errorf("Replan(%g) = %v, want ErrConfig and the plan as it was", rate, err)
		}
	}
}
