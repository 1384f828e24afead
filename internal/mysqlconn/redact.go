package mysqlconn

import "regexp"

// valueIn finds the row values that servers put into their messages: duplicate
// entries (1062, 1586), incorrect or truncated values (1292, 1366, 1411, 1525),
// JSON that does not parse (3140 and kin, whose text says where only).
var valueIn = []*regexp.Regexp{
	regexp.MustCompile(`(?s)(Duplicate entry ').*(' for key )`),
	regexp.MustCompile(`(?s)((?:Incorrect|Truncated incorrect) [^:]{1,40} value: ').*('(?: for column |$))`),
}

// Redact replaces row values in a message of a server: what is wrong and where
// may be said, what the rows hold may not.
func Redact(message string) string {
	for _, re := range valueIn {
		message = re.ReplaceAllString(message, "${1}…${2}")
	}
	return message
}
