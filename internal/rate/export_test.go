package rate

// What the tests, which are outside the package because package bloom imports it,
// must look at inside.
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
