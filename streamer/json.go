package streamer

import (
	"bytes"
	"strconv"
)

// shortDoubles rewrites the long whole doubles of a JSON text, which the library
// prints digit by digit: the server reads 602214076000000000000000.0 as another
// double than 6.02214076e23, which it prints itself.
func shortDoubles(text []byte) []byte {
	if !bytes.Contains(text, []byte(".0")) {
		return text
	}
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '"':
			i = skipJSONString(text, i)
		case b == '-' || b >= '0' && b <= '9':
			end := i + 1
			for end < len(text) && isNumber(text[end]) {
				end++
			}
			if short := shortDouble(text[i:end]); short != "" {
				out = append(append(out, text[done:i]...), short...)
				done = end
			}
			i = end
		default:
			i++
		}
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func isNumber(b byte) bool {
	return b >= '0' && b <= '9' || b == '.' || b == 'e' || b == 'E' || b == '+' || b == '-'
}

func skipJSONString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// shortDouble returns the shorter form of a whole double of more than 15
// digits, or "".
func shortDouble(number []byte) string {
	whole, ok := bytes.CutSuffix(number, []byte(".0"))
	if !ok || len(whole) <= 16 || bytes.ContainsAny(whole, ".eE") {
		return ""
	}
	f, err := strconv.ParseFloat(string(whole), 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}
