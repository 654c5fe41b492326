package kernel

// FirstSync returns the index of the first of the filters that contains h, or their number
// if none does, while others add. It is for filters that are searched together, such as the
// layers of a filter that grows: both lines of the key in every filter are on their way from
// memory before the first filter is probed. Fetching only the first lines was as fast for
// keys that no filter has, and a quarter slower for others.
func FirstSync(filters []*Paired, h uint64) int {
	if useAVX2 {
		return pairedFirstAVX2(filters, h)
	}
	for i, f := range filters {
		if f.ContainsSync(h) {
			return i
		}
	}
	return len(filters)
}
