package main

import (
	"fmt"

	"github.com/bloomery/bloom"
	"github.com/bloomery/bloom/classic"
	"github.com/bloomery/bloom/internal/anyfile"
	"github.com/bloomery/bloom/internal/human"
	"github.com/bloomery/bloom/internal/lines"
	"github.com/spf13/cobra"
)

// intersectCommand is `bloomery intersect`.
type intersectCommand struct {
	combining
	common bloom.Overlap // of the last two
}

func newIntersect() *cobra.Command {
	c := &intersectCommand{}
	cmd := &cobra.Command{
		Use:   "intersect -o OUT A B...",
		Short: "Intersect filters",
		Long: `Intersect writes to OUT the bits that all the filters have. Every key that was
added to all of them is still found, and so are some that were added to only one:
OUT's rate is at most that of the best filter, but higher than that of a filter
built from the common keys. All must have the same kind, hash and seed; larger
ones are folded to the size of the smallest, as in 'bloomery merge'.

It estimates from the bits how many keys the filters have in common; a few common
keys among many cannot be distinguished from none.`,
		Example:               `  bloomery intersect -o both.bloom ours.bloom theirs.bloom`,
		Args:                  twoFilters("bloomery intersect -o OUT A B"),
		RunE:                  c.run,
		DisableFlagsInUseLine: true,
	}
	c.addFlags(cmd)
	return cmd
}

func (c *intersectCommand) run(cmd *cobra.Command, args []string) error {
	into, parts, err := c.combine(args, c.intersect)
	if err != nil {
		return err
	}
	defer into.Close()
	v := combinedJSON{}
	if len(args) == 2 { // the estimate is made for two sets
		v.Common, v.CommonError = human.Finite(c.common.Intersection), human.Finite(c.common.IntersectionError)
	}
	tell := lines.NewReporter(cmd.ErrOrStderr(), cmd.OutOrStdout(), false, nil)
	return c.finish(cmd, tell, into, parts, v)
}

// intersect keeps in into only what other has too.
func (c *intersectCommand) intersect(into, other *anyfile.File) (err error) {
	switch f := into.Filter.(type) {
	case *bloom.Filter:
		return withSame(f, other, func(g *bloom.Filter) error {
			folded, err := foldTo(g, f, g.Fold)
			if err != nil {
				return err
			}
			if folded != g {
				defer folded.Close()
			}
			if c.common, err = f.Overlap(folded); err != nil {
				return err
			}
			return f.Intersect(folded)
		}, into)
	case *bloom.SplitBlock:
		return withSame(f, other, func(g *bloom.SplitBlock) error {
			folded, err := foldTo(g, f, g.Fold)
			if err != nil {
				return err
			}
			if folded != g {
				defer folded.Close()
			}
			if c.common, err = f.Overlap(folded); err != nil {
				return err
			}
			return f.Intersect(folded)
		}, into)
	case *classic.Filter:
		return withSame(f, other, func(g *classic.Filter) (err error) {
			if c.common, err = f.Overlap(g); err != nil {
				return err
			}
			return f.Intersect(g)
		}, into)
	}
	return fmt.Errorf("%w: a %s is more than bits, so it has no intersection: use filters of the kinds filter, splitblock or classic", bloom.ErrUnlike, into.Kind())
}

// foldTo folds g to the size of f, if it is larger by a whole factor.
func foldTo[F interface{ Plan() bloom.Plan }](g, f F, fold func(by uint64) (F, error)) (F, error) {
	large, small := g.Plan().Blocks, f.Plan().Blocks
	if large == small || large%small != 0 {
		return g, nil // the intersection says what is wrong
	}
	return fold(large / small)
}
