//go:build azure

package bucket

import (
	"strings"
	"testing"
)

func TestAzureErrors(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "account")
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	nativeErrors(t, "Azure", func(address string) string {
		return "azblob://data/key?protocol=http&localemu=true&domain=" + strings.TrimPrefix(address, "http://")
	})
}
