//go:build !gcs

package bucket

// Google's client brings gRPC and with it half of a program's size, half of the memory
// it begins with, and a minute of the first build.
const hasGCS = false
