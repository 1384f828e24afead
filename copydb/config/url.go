package config

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

const urlForm = "mysql://user@host:port"

// ParseURL turns a server's URL into settings of side, "source" or "target":
// mysql://user@host:port, with ?tls=MODE and ?socket=PATH. Everything that says
// which server it is comes from the URL then. Its errors hold nothing of the
// URL, which may have a password in it.
func ParseURL(side, raw, origin string) ([]Setting, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("must have the form " + urlForm)
	}
	if err := checkURL(u, side); err != nil {
		return nil, err
	}
	query := u.Query()
	host, socket := u.Hostname(), query.Get("socket")
	if socket != "" && host == "localhost" {
		host = ""
	}
	set := []Setting{
		String(side+".host", host, origin),
		String(side+".socket", socket, origin),
	}
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	set = append(set, Text(side+".port", port, origin))
	if user := u.User.Username(); user != "" {
		set = append(set, String(side+".user", user, origin))
	}
	if query.Has("tls") {
		set = append(set, String(side+".tls.mode", query.Get("tls"), origin))
	}
	return set, nil
}

func checkURL(u *url.URL, side string) error {
	if _, has := u.User.Password(); has {
		return errors.New("a password in a URL can be read by every user of the machine; use --" +
			side + "-password-env, --" + side + "-password-file, or the prompt on a terminal")
	}
	query, err := url.ParseQuery(u.RawQuery)
	switch {
	case u.Scheme != "mysql" && u.Scheme != "mariadb", u.Opaque != "", err != nil:
		return errors.New("must have the form " + urlForm)
	case strings.Trim(u.Path, "/") != "" || u.Fragment != "":
		return errors.New("must end after the port; which tables to copy is for --include (form: " + urlForm + ")")
	case u.Hostname() == "" && query.Get("socket") == "":
		return errors.New("has no host (form: " + urlForm + ")")
	}
	for name, values := range query {
		if !slices.Contains([]string{"tls", "socket"}, name) || len(values) > 1 {
			return errors.New("takes tls=MODE and socket=PATH after the question mark, each once")
		}
	}
	return nil
}
