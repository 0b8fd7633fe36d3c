package httpphases

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestInnermost(t *testing.T) {
	for name, c := range map[string]struct{ detail, want string }{
		"none":  {"System.Net.Http.HttpRequestException: Response status code does not indicate success: 404 (Not Found).\r\n   at X.Y()", ""},
		"empty": {"", ""},
		"two deep": {"System.Net.Http.HttpRequestException: An error occurred while sending the request.\n ---> System.IO.IOException: Unable to read data: Connection reset by peer." +
			"\n ---> System.Net.Sockets.SocketException (104): Connection reset by peer\n   --- End of inner exception stack trace ---\n   at A.B()" +
			"\n   --- End of inner exception stack trace ---\n   at C.D()", "System.Net.Sockets.SocketException (104): Connection reset by peer"},
		"on one line, of .NET Core 3.1": {"System.Net.Http.HttpRequestException: The SSL connection could not be established, see inner exception. ---> " +
			"System.Security.Authentication.AuthenticationException: The remote certificate is invalid.\r\n   at A.B()\r\n   --- End of inner exception stack trace ---",
			"System.Security.Authentication.AuthenticationException: The remote certificate is invalid."},
		"of several the first": {"System.AggregateException: One or more errors occurred. (a) (b)\n ---> E1: a\n   --- End of inner exception stack trace ---" +
			"\n ---> (Inner Exception #1) E2: b\n   --- End of inner exception stack trace ---<---", "E1: a"},
		"numbered": {"A: x ---> (Inner Exception #0) E1: a<---", "E1: a<---"},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, innermost(c.detail)) })
	}
}

// A served request tells its host and its port in one text.
func TestServedPlace(t *testing.T) {
	for name, c := range map[string]struct {
		scheme, host string
		want         string
		port         int
		url          string
	}{
		"with a port":        {"http", "localhost:43331", "localhost", 43331, "http://localhost:43331/ok?a=b"},
		"of the scheme":      {"https", "shop.example", "shop.example", 443, "https://shop.example/ok?a=b"},
		"told all the same":  {"http", "shop.example:80", "shop.example", 80, "http://shop.example/ok?a=b"},
		"IPv6":               {"http", "[::1]:5000", "::1", 5000, "http://[::1]:5000/ok?a=b"},
		"IPv6, no port":      {"http", "[::1]", "::1", 80, "http://[::1]/ok?a=b"},
		"no scheme":          {"", "localhost:5000", "localhost", 5000, ""},
		"no scheme, no port": {"", "localhost", "localhost", 0, ""},
		"odd scheme":         {"*", "localhost", "", 0, ""},
		"not told":           {"http", "", "", 0, ""},
	} {
		s := ServerRequest{Scheme: c.scheme, Host: c.host, Target: "/ok?a=b"}
		host, port := s.Place()
		assert.Equal(t, c.want, host, name)
		assert.Equal(t, c.port, port, name)
		assert.Equal(t, c.url, s.URL(), name)
	}
}

func TestMarkOfGuessedServer(t *testing.T) {
	r := Request{Why: &Explanation{Server: &ServerRequest{}}}
	assert.Zero(t, r.Marks())
	r.Why.ServerGuessed = true
	assert.Equal(t, []string{"guessed"}, r.Marks().List())
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"InterNetwork:16:{1,187,93,184,216,34,0,0,0,0,0,0,0,0}":                                                                                                        "93.184.216.34:443",
		"InterNetworkV6:28:{1,187,0,0,0,0,0,0,0,0,0,0,0,0,0,0,255,255,127,0,0,1,0,0,0,0}":                                                                              "127.0.0.1:443",
		"Unix:43:{47,118,97,114,47,114,117,110,47,97,45,115,101,114,118,105,99,101,47,119,105,116,104,47,97,47,108,111,110,103,47,110,97,109,101,46,115,111,99,107,0}": "/var/run/a-service/with/a/long/name.sock",
		"Unix:6:{0,97,98,99}": "@abc",
		"Unix:2:{}":           "Unix:2:{}",
		"Unix:3:{0}":          "Unix:3:{0}",
		"10.0.0.1:80":         "10.0.0.1:80",
	} {
		assert.Equal(t, want, address(text), text)
	}
}
