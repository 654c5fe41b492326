package server

// matches reports whether text fits a pattern of Redis: * any bytes, ? any one,
// [abc] [^abc] [a-z] one of some, and a backslash before a byte that means itself.
// The time is at most the product of the lengths.
func matches(pattern, text string) bool {
	star, mark := -1, 0 // behind the last *, and what it is to take less of
	p, t := 0, 0
	for {
		if t == len(text) {
			for p < len(pattern) && pattern[p] == '*' {
				p++
			}
			if p == len(pattern) {
				return true
			}
			return false // whatever the last * takes, too little is left
		}
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, mark = p, t
			continue
		}
		if p < len(pattern) {
			if ok, next := matchOne(pattern, p, text[t]); ok {
				p, t = next, t+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, t = star, mark
	}
}

// matchOne compares a byte with the element of the pattern at p, which is no *,
// and returns where the next one begins.
func matchOne(pattern string, p int, b byte) (ok bool, next int) {
	switch pattern[p] {
	case '?':
		return true, p + 1
	case '[':
		return matchClass(pattern, p+1, b)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return pattern[p] == b, p + 1
}

// matchClass is matchOne of what stands behind a [. A class that does not end
// ends with the pattern.
func matchClass(pattern string, p int, b byte) (ok bool, next int) {
	not := p < len(pattern) && pattern[p] == '^'
	if not {
		p++
	}
	for p < len(pattern) && pattern[p] != ']' {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			ok = ok || pattern[p] == b
		case p+2 < len(pattern) && pattern[p+1] == '-':
			from, to := pattern[p], pattern[p+2]
			ok = ok || min(from, to) <= b && b <= max(from, to)
			p += 2
		default:
			ok = ok || pattern[p] == b
		}
		p++
	}
	return ok != not, min(p+1, len(pattern))
}
