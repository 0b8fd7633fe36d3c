// Command tracefix post-processes .NET traces offline.
package main

func main() {}
