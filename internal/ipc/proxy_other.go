//go:build !unix

package ipc

import (
	"context"
	"errors"
	"io"
)

var errNoPipes = errors.New("snoop needs Unix sockets: record on Linux or macOS")

// A Proxy stands for the diagnostic server of a process.
type Proxy struct{ Path string }

// Stats tell what a Proxy recorded.
type Stats struct {
	Conns, Refused int
	Bytes          int64
}

// Endpoint returns the diagnostics socket of a process.
func Endpoint(int) (string, error) { return "", errNoPipes }

// ProxyPath returns where a proxy for a socket listens.
func ProxyPath(target string) (path string, byPID bool) { return target + ".snoop", false }

// Alive reports whether there is such a process.
func Alive(int) bool { return true }

// Listen makes a proxy.
func Listen(string, string) (*Proxy, error) { return nil, errNoPipes }

// Close ends a proxy.
func (p *Proxy) Close() error { return nil }

// Serve relays connections.
func (p *Proxy) Serve(context.Context, io.Writer) (Stats, error) { return Stats{}, errNoPipes }
