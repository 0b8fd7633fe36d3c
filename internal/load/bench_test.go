package load

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkProfile(b *testing.B) {
	for _, name := range []string{"web-60s", "csc", "chain", "v6-chain"} {
		b.Run(name, func(b *testing.B) {
			open := opener(b, "dotnet10/"+name+".nettrace")
			st, err := os.Stat(filepath.Join(corpus, "dotnet10", name+".nettrace"))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(st.Size())
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Profile(context.Background(), open, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
