package anyfile

import "bytes"

// The normal form of a URL: RFC 3986, sections 6.2.2 (syntax) and 6.2.3 (scheme), without
// the fragment, which names a place within the resource. The conversion works on bytes,
// because a line need not be a URL at all, and is idempotent.

// defaultPorts are the ports that a URL may omit.
var defaultPorts = map[string]string{"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}

// appendURL appends the normal form of a URL with an authority, and any other line
// unchanged.
func appendURL(dst, line []byte) []byte {
	scheme, rest, ok := bytes.Cut(line, []byte("://"))
	if !ok || !isScheme(scheme) {
		return append(dst, line...)
	}
	start := len(dst)
	dst = appendLower(dst, scheme)
	port := defaultPorts[string(dst[start:])]
	dst = append(dst, "://"...)

	rest, _, _ = bytes.Cut(rest, []byte("#"))
	authority := rest
	if end := bytes.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	path, query, hasQuery := bytes.Cut(rest[len(authority):], []byte("?"))

	dst = appendAuthority(dst, authority, port)
	dst = appendPath(dst, path)
	if hasQuery {
		dst = append(dst, '?')
		dst = appendEncoded(dst, query)
	}
	return dst
}

// isScheme follows the grammar: a letter, then letters, digits, "+", "-" and ".".
func isScheme(s []byte) bool {
	for i, c := range s {
		letter := 'a' <= lower(c) && lower(c) <= 'z'
		if !letter && (i == 0 || !(isDigit(c) || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	return len(s) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// appendAuthority appends user@host:port.
func appendAuthority(dst, authority []byte, defaultPort string) []byte {
	if at := bytes.LastIndexByte(authority, '@'); at >= 0 {
		dst = append(appendEncoded(dst, authority[:at]), '@')
		authority = authority[at+1:]
	}
	host, port := splitPort(authority)
	start := len(dst)
	dst = appendEncoded(dst, host)
	for i := start; i < len(dst); i++ {
		if dst[i] == '%' && isTriplet(dst[i:]) {
			i += 2 // its digits stay in upper case
			continue
		}
		dst[i] = lower(dst[i])
	}
	if len(port) > 0 && string(port) != defaultPort {
		dst = append(append(dst, ':'), port...)
	}
	return dst
}

// splitPort splits the port off host:port or [host]:port. By the grammar, anything with
// more colons is not a host; it is not split.
func splitPort(authority []byte) (host, port []byte) {
	colon := bytes.LastIndexByte(authority, ':')
	if colon < 0 || !allDigits(authority[colon+1:]) {
		return authority, nil
	}
	host = authority[:colon]
	if bytes.IndexByte(host, ':') >= 0 && (host[0] != '[' || host[colon-1] != ']') {
		return authority, nil
	}
	return host, authority[colon+1:]
}

func allDigits(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// appendPath appends a path without its "." and ".." segments (section 5.2.4).
func appendPath(dst, path []byte) []byte {
	if len(path) == 0 {
		return append(dst, '/')
	}
	floor := len(dst)
	segments := bytes.Split(appendEncoded(nil, path)[1:], []byte("/"))
	for i, segment := range segments {
		last := i == len(segments)-1
		switch string(segment) {
		case ".", "..":
			if len(segment) == 2 {
				if slash := bytes.LastIndexByte(dst[floor:], '/'); slash >= 0 {
					dst = dst[:floor+slash]
				}
			}
			if last {
				dst = append(dst, '/')
			}
		default:
			dst = append(append(dst, '/'), segment...)
		}
	}
	return dst
}

// appendEncoded appends s with its percent-encoding in normal form: characters that need
// no encoding are decoded, and the others get upper-case digits. A part with a "%" that
// does not begin a triplet is unchanged, because decoding within it could make new
// triplets.
func appendEncoded(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] == '%' {
			if !isTriplet(s[i:]) {
				return append(dst, s...)
			}
			i += 2
		}
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			dst = append(dst, s[i])
			continue
		}
		c := unhex(s[i+1])<<4 | unhex(s[i+2])
		if isUnreserved(c) {
			dst = append(dst, c)
		} else {
			dst = appendUpper(dst, s[i:i+3])
		}
		i += 2
	}
	return dst
}

func isTriplet(s []byte) bool { return len(s) >= 3 && isHexDigit(s[1]) && isHexDigit(s[2]) }

func unhex(c byte) byte {
	if isDigit(c) {
		return c - '0'
	}
	return lower(c) - 'a' + 10
}

func isUnreserved(c byte) bool {
	return isDigit(c) || 'a' <= lower(c) && lower(c) <= 'z' || c == '-' || c == '.' || c == '_' || c == '~'
}
