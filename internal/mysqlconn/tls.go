package mysqlconn

import (
	"crypto/tls"
	"fmt"
)

// TLSConfig turns a mode into what Config takes. The modes that check the
// server's certificate are not supported yet.
func TLSConfig(mode string) (conf *tls.Config, fallback bool, err error) {
	switch mode {
	case "disabled":
		return nil, false, nil
	case "preferred", "":
		return &tls.Config{InsecureSkipVerify: true}, true, nil
	case "required":
		return &tls.Config{InsecureSkipVerify: true}, false, nil
	}
	return nil, false, fmt.Errorf("tls mode %q is not supported yet", mode)
}
