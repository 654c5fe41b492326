package rate

// What the tests need from inside the package. They are outside it, because they import
// package bloom, which imports this package.
const (
	FewBlocks  = fewBlocks
	ExactBelow = exactBelow
)

var (
	PairedPoisson  = pairedPoisson
	PairedBinomial = pairedBinomial
	ClassicExact   = classicExact
	Choose         = choose
)
