//go:build !linux

package main

// useHugePages is for Linux only.
func useHugePages(int) {}
