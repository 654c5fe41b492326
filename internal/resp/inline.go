package resp

// inline is Next for a command that is a line of words, as people type them.
func (p *Parser) inline(buf []byte, args [][]byte) (out [][]byte, used int, err error) {
	end, err := p.lineEnd(buf, 0, '\n', p.limits.InlineBytes, LimitInlineBytes, errInlineBytes)
	if err != nil {
		return args, 0, err
	}
	line := buf[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	before := len(args)
	for at := 0; ; {
		for at < len(line) && isSpace(line[at]) {
			at++
		}
		if at == len(line) {
			return args, end + 1, nil
		}
		if len(args)-before == p.limits.Args {
			return args, 0, p.errArgs()
		}
		word, next, ok := unquote(line, at)
		if !ok {
			return args, 0, errQuotes
		}
		args = append(args, word)
		at = next
	}
}

// unquote reads the word that begins at offset at, and returns it and where it ends. It
// decodes the word in place, since escapes only become shorter. It returns false if a
// quote is not closed, or is closed in the middle of a word.
//
// A quote may open in the middle of a word. Inside "..." the escapes are \n \r \t \b \a
// \xHH, and a backslash before any other byte means that byte; inside '...' the only
// escape is \'.
func unquote(line []byte, at int) (word []byte, next int, ok bool) {
	r, w := at, at // read, write
	var quote byte // the open quote, or 0
	for ; r < len(line); r++ {
		c := line[r]
		switch {
		case quote == 0 && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			return line[at:w:w], r, true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			continue
		case quote != 0 && c == quote:
			r++
			return line[at:w:w], r, r == len(line) || isSpace(line[r])
		case quote == '"' && c == '\\' && r+3 < len(line) && line[r+1] == 'x' && isHex(line[r+2]) && isHex(line[r+3]):
			c = hexDigit(line[r+2])<<4 | hexDigit(line[r+3])
			r += 3
		case quote == '"' && c == '\\' && r+1 < len(line):
			r++
			c = unescape(line[r])
		case quote == '\'' && c == '\\' && r+1 < len(line) && line[r+1] == '\'':
			r++
			c = '\''
		}
		line[w] = c
		w++
	}
	return line[at:w:w], r, quote == 0
}

// unescape returns the byte that a backslash and c stand for.
func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

// isSpace is C's isspace. Only some of these end a word.
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func hexDigit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
