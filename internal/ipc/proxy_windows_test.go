package ipc

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPipes: a proxy on a named pipe passes on and records what a tool and a runtime say.
func TestPipes(t *testing.T) {
	target := pipes + "tracefix-test-" + strconv.Itoa(os.Getpid())
	_, err := Listen(target, target+".snoop")
	require.ErrorContains(t, err, "no diagnostics server listens there")
	server, err := winio.ListenPipe(target, nil)
	require.NoError(t, err)
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { // answers what it hears, and hangs up
				defer c.Close()
				b := make([]byte, 5)
				if _, err := io.ReadFull(c, b); err == nil {
					c.Write(bytes.Repeat(b, 40000))
				}
			}()
		}
	}()
	path, byPID := ProxyPath(target)
	require.False(t, byPID)
	p, err := Listen(target, path)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var rec bytes.Buffer
	done := make(chan Stats)
	go func() {
		st, err := p.Serve(ctx, &rec)
		assert.NoError(t, err)
		done <- st
	}()
	// Wine connects the first one with the instance by which the listener keeps the name, and which
	// accepts nobody.
	first, err := connect(ctx, path)
	require.NoError(t, err)
	first.Close()
	tool, err := connect(ctx, path)
	require.NoError(t, err)
	_, err = tool.Write([]byte("hello"))
	require.NoError(t, err)
	said, err := io.ReadAll(tool)
	require.NoError(t, err)
	assert.Len(t, said, 200000, "all that the runtime said before it hung up")
	tool.Close()
	p.Close()
	st := <-done
	assert.Equal(t, int64(200005), st.Bytes)
	assert.Zero(t, st.Refused)
	assert.Contains(t, rec.String(), "hello")
}

func TestAlive(t *testing.T) {
	assert.True(t, Alive(os.Getpid()))
	assert.False(t, Alive(1<<30))
	path, err := Endpoint(os.Getpid())
	require.NoError(t, err)
	assert.Equal(t, pipes+"dotnet-diagnostic-"+strconv.Itoa(os.Getpid()), path)
}
