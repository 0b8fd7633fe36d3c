# make check is what a change must pass; CI runs the same.
.PHONY: size check build test race fuzz bench golden demo extras nupkg reproducible release-dry cross apidiff vuln
SHELL = bash

build:
	go build -o bin/tracefix ./cmd/tracefix

test:
	go test ./...

check:
	.ci/run

race:
	go test -race -short ./...

# Each fuzz target for 30 seconds.
fuzz:
	@for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
	    echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s $$p || exit 1; \
	  done; \
	done

# Benchmarks of the parts, then whole commands on TRACES, beside cp, one processor and an
# older program OLD: make bench OLD=../old/tracefix TRACES='a.nettrace b.chromium.json'
TRACES ?= testdata/chain.chromium.json.zst testdata/chain.nettrace.zst
bench: build
	go test -run '^$$' -bench . -benchtime 2s ./...
	go run ./packaging/bench $(if $(OLD),-old $(OLD)) $(TRACES)

# Whole commands only, beside those of the last release, if there is one.
bench-release: build
	@last=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || { go run ./packaging/bench $(TRACES); exit; }; \
	old=$$(mktemp -d) && git worktree add -q --detach $$old $$last && \
	(cd $$old && go build -o tracefix ./cmd/tracefix) && go run ./packaging/bench -old $$old/tracefix $(TRACES); \
	code=$$?; git worktree remove --force $$old; exit $$code

golden:
	go test ./... -update

# The README's first command, on a trace in testdata.
demo:
	@dir=$$(mktemp -d) && go run ./cmd/tracefix repair testdata/chain.chromium.json.zst -o $$dir/fixed.chromium.json && rm -r $$dir

# The program, symbols and all: 25 MB are aimed at and not reached; it must not grow beyond what it has now.
# kong and html/template call methods by their names, so that the linker keeps every exported method
# of all types in interfaces: that is 3 MB, and what the client of object stores drags in another 2.
size: build
	@n=$$(wc -c < bin/tracefix) && echo "$$n bytes" && [ $$n -le 29900000 ]

# What a release holds beside the programs: man page, completions, licences.
extras:
	rm -rf dist-extras && mkdir -p dist-extras/man dist-extras/completions
	go build -o bin/tracefix ./cmd/tracefix
	bin/tracefix man | gzip -9n > dist-extras/man/tracefix.1.gz
	for s in bash zsh fish powershell; do bin/tracefix completion $$s > dist-extras/completions/tracefix.$$s || exit 1; done
	mv dist-extras/completions/tracefix.zsh dist-extras/completions/_tracefix
	mv dist-extras/completions/tracefix.powershell dist-extras/completions/tracefix.ps1
	go run ./packaging/notice bin/tracefix > dist-extras/NOTICE

RIDS = linux-x64:linux:amd64 linux-arm64:linux:arm64 linux-musl-x64:linux:amd64 linux-musl-arm64:linux:arm64 \
       osx-x64:darwin:amd64 osx-arm64:darwin:arm64 win-x64:windows:amd64 win-arm64:windows:arm64
VERSION ?= 0.0.0-dev
RELEASE_FLAGS = -trimpath -ldflags "-s -w -X main.release=$(VERSION) -X main.commit=$$(git rev-parse HEAD) -X main.date=$$(git log -1 --format=%cI)"

# The programs of all systems, as NuGet packages of a .NET tool.
nupkg:
	rm -rf dist-nupkg && mkdir -p dist-nupkg
	@args=; for r in $(RIDS); do IFS=: read -r rid os arch <<< "$$r"; \
	  f=dist-nupkg/$$os-$$arch/tracefix; [ $$os = windows ] && f=$$f.exe; \
	  [ -f $$f ] || CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build $(RELEASE_FLAGS) -o $$f ./cmd/tracefix || exit 1; \
	  args="$$args $$rid=$$f"; \
	done; go run ./packaging/nupkg -version $(VERSION) -o dist-nupkg $$args

# Builds the same commit in two folders; the programs must be the same bytes.
reproducible:
	@a=$$(mktemp -d) && b=$$(mktemp -d) && cp -r . $$b/src && \
	CGO_ENABLED=0 go build $(RELEASE_FLAGS) -o $$a/tracefix ./cmd/tracefix && \
	(cd $$b/src && CGO_ENABLED=0 GOCACHE=$$b/cache go build $(RELEASE_FLAGS) -o $$b/tracefix ./cmd/tracefix) && \
	cmp $$a/tracefix $$b/tracefix && echo "reproducible: $$(sha256sum < $$a/tracefix)" && chmod -R u+w $$a $$b && rm -rf $$a $$b

# The whole release but for publishing, into dist/.
release-dry:
	go run github.com/goreleaser/goreleaser/v2@v2.18.2 release --snapshot --clean --skip=ko,publish

# Known vulnerabilities in what the program calls.
vuln:
	go run golang.org/x/vuln/cmd/govulncheck@latest ./...

# The six systems that are released compile, tests included.
cross:
	@for t in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo $$t; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go vet ./... || exit 1; \
	done

# Incompatible changes of the Go API since the last release.
apidiff:
	@last=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || { echo "no release yet: nothing to compare with"; exit 0; }; \
	old=$$(mktemp -d) && git worktree add -q --detach $$old $$last && code=0; \
	for p in $$(go list ./... | grep -v -e /internal/ -e /cmd/ -e /examples/ -e /packaging/); do \
	  (cd $$old && go run golang.org/x/exp/cmd/apidiff@latest -w $$old/api $$p) 2>/dev/null || continue; \
	  out=$$(go run golang.org/x/exp/cmd/apidiff@latest -incompatible $$old/api $$p); \
	  [ -z "$$out" ] || { echo "$$p:"; echo "$$out"; code=1; }; \
	done; git worktree remove --force $$old; exit $$code
