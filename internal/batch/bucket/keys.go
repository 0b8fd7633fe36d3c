package bucket

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// A chain finds credentials where the tools of AWS do, in the same order: environment,
// shared files (static keys, SSO, credential_process), then what the machine or the pod
// is: web identity, container, instance. The client library's own chain forgets why a
// source failed, which is what a user has to know.
type chain struct {
	profile   string
	anonymous bool

	mu       sync.Mutex
	source   string // where the credentials come from
	from     credentials.Provider
	failures []string
}

// metadata is the client for the services that tell who a machine is. They are close,
// or not there: an address that nobody answers must not hold up a batch.
var metadata = &http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 2 * time.Second}).DialContext},
}

// RetrieveWithCredContext implements credentials.Provider.
func (c *chain) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	none := credentials.Value{SignerType: credentials.SignatureAnonymous}
	if c.anonymous {
		return none, nil
	}
	sources := []struct {
		name string
		from credentials.Provider
		try  bool
	}{
		{"the keys in the environment", &credentials.EnvAWS{}, os.Getenv("AWS_ACCESS_KEY_ID") != "" || os.Getenv("AWS_ACCESS_KEY") != ""},
		{"the shared credentials file", &credentials.FileAWSCredentials{Profile: c.profile}, true},
		{"the identity of the machine or pod", &credentials.IAM{Client: metadata}, os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" || os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != ""},
	}
	c.failures = nil
	for _, s := range sources {
		if !s.try {
			continue
		}
		v, err := s.from.RetrieveWithCredContext(cc)
		if err == nil && v.AccessKeyID != "" && v.SecretAccessKey != "" {
			c.source, c.from = s.name, s.from
			return v, nil
		}
		if _, file := s.from.(*credentials.FileAWSCredentials); err != nil && !(file && errors.Is(err, os.ErrNotExist)) {
			c.failures = append(c.failures, fmt.Sprintf("%s: %v", s.name, err))
		}
	}
	c.source, c.from = "", nil
	return none, nil
}

// Retrieve implements credentials.Provider.
func (c *chain) Retrieve() (credentials.Value, error) { return c.RetrieveWithCredContext(nil) }

// IsExpired implements credentials.Provider.
func (c *chain) IsExpired() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.anonymous {
		return false
	}
	return c.from == nil || c.from.IsExpired()
}

// found says which credentials are used.
func (c *chain) found() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.anonymous:
		return "anonymous=true"
	case c.source != "":
		return c.source
	case len(c.failures) > 0:
		return "no credentials (" + strings.Join(c.failures, "; ") + ")"
	}
	return "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
}
