package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFor(t *testing.T) {
	const line = "none; `dotnet-trace collect -p PID --profile dotnet-common,dotnet-sampled-thread-time --providers A:0x80:4` records it"
	assert.Equal(t, line, For(5, line))
	assert.Equal(t, "none; `dotnet-trace collect-linux --profile dotnet-common,cpu-sampling --providers A:0x80:4` records it", For(6, line))
	assert.Equal(t, "`dotnet-trace collect-linux --profile gc-collect` does", For(6, "`dotnet-trace collect --profile gc-collect -p PID` does"))
}
