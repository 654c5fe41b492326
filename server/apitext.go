package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// apiText is a name or a key in JSON, where text must be UTF-8: a string, or for other
// bytes {"base64": "..."}.
type apiText []byte

type base64JSON struct {
	Base64 *string `json:"base64"`
}

func (t apiText) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	text := base64.StdEncoding.EncodeToString(t)
	return json.Marshal(base64JSON{&text})
}

func (t *apiText) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var coded base64JSON
		if err := json.Unmarshal(data, &coded); err != nil || coded.Base64 == nil {
			return errors.New(`want a string, or {"base64": "..."}`)
		}
		bytes, err := unBase64(*coded.Base64)
		*t = bytes
		return err
	}
	var text *string
	if err := json.Unmarshal(data, &text); err != nil || text == nil {
		return fmt.Errorf(`want a string, or {"base64": "..."}, not %.20s`, data)
	}
	if hasLoneSurrogate(data) {
		return errors.New(`half a surrogate pair is no text: send other bytes as {"base64": "..."}`)
	}
	*t = []byte(*text)
	return nil
}

// unBase64 decodes either alphabet, with or without padding.
func unBase64(text string) ([]byte, error) {
	text = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(text), "=")
	bytes, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("not base64")
	}
	return bytes, nil
}

// hasLoneSurrogate reports whether a JSON string has an escape that json replaces by
// U+FFFD, so that two keys would become one.
func hasLoneSurrogate(data []byte) bool {
	unit := func(at int) (u uint64) { // the escape there, else 0
		if at+6 > len(data) || data[at] != '\\' || data[at+1] != 'u' {
			return 0
		}
		fmt.Sscanf(string(data[at+2:at+6]), "%x", &u)
		return u
	}
	for at := 0; at < len(data); at++ {
		if data[at] != '\\' {
			continue
		}
		switch u := unit(at); {
		case u>>10 == 0xd800>>10 && unit(at+6)>>10 == 0xdc00>>10:
			at += 11
		case u>>11 == 0xd800>>11:
			return true
		default:
			at++
		}
	}
	return false
}

// finite returns nil, which is null in JSON, for what JSON has no number for.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	x += 0 // -0, of an empty filter, becomes 0
	return &x
}
