// Command nupkg packs the programs of a release as NuGet packages of a .NET tool, so that
// `dotnet tool install -g tracefix` and `dnx tracefix` work with nothing else installed.
// It is run by the release pipeline; see .goreleaser.yaml.
//
// A tool package of a native program is two kinds of packages: one that names a package
// for each runtime identifier, and these with the programs. SDKs from .NET 10 on install
// them; the layout is that of `dotnet pack` with RuntimeIdentifiers and AOT.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("nupkg: ")
	version := flag.String("version", "", "version of the packages, such as 1.2.3")
	readme := flag.String("readme", "README.md", "readme that the gallery shows")
	out := flag.String("o", ".", "folder for the packages")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: nupkg -version V [-readme FILE] [-o DIR] RID=PROGRAM...")
		flag.PrintDefaults()
	}
	flag.Parse()
	p := &release{Version: *version}
	text, err := os.ReadFile(*readme)
	if err != nil {
		log.Fatal(err)
	}
	p.Readme = text
	for _, arg := range flag.Args() {
		rid, path, ok := strings.Cut(arg, "=")
		if !ok {
			log.Fatalf("%s: expected RID=PROGRAM, such as linux-x64=dist/tracefix", arg)
		}
		p.Programs = append(p.Programs, program{RID: rid, Path: path})
	}
	names, err := p.write(*out)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range names {
		fmt.Println(n)
	}
}
