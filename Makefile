# make check is what a change must pass; CI runs the same.
.PHONY: size check build test race fuzz bench bench-parts bench-release golden demo extras nupkg reproducible release-dry image cross apidiff vuln
SHELL = bash

# Without the resolver of libc, as releases are built: it takes 2 ms to start.
build:
	CGO_ENABLED=0 go build -o bin/tracefix ./cmd/tracefix

test:
	go test ./...

check:
	.ci/run

race:
	go test -race -short -timeout 40m ./...

# Each fuzz target for 30 seconds. Coverage differs a little from run to run, and to look for the shortest input that
# has it would take all of them.
fuzz:
	@for p in $$(go list ./...); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep ^Fuzz); do \
	    echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s -fuzzminimizetime 10x $$p || exit 1; \
	  done; \
	done

# Benchmarks of the parts, then whole commands on TRACES, beside cp, one processor and an
# older program OLD: make bench OLD=../old/tracefix TRACES='a.nettrace b.chromium.json'
TRACES ?= testdata/chain.chromium.json.zst testdata/chain.nettrace.zst
bench: build
	go test -run '^$$' -bench . -benchtime 2s ./...
	go run ./packaging/bench $(if $(OLD),-old $(OLD)) $(TRACES)

# The parts' benchmarks beside those of an older commit, with what of the difference is noise:
# make bench-parts BASE=main~20 PARTS='./nettrace ./stackfix'
BENCHSTAT = v0.0.0-20260908200009-22c9c6c9d4da
BASE ?= HEAD~1
PARTS ?= ./...
bench-parts:
	@old=$$(mktemp -d) && git worktree add -q --detach $$old/src $(BASE) && \
	for i in 1 2 3 4 5 6; do \
	  (cd $$old/src && go test -run '^$$' -bench . -benchtime 0.5s $(PARTS)) >> $$old/old.txt && \
	  go test -run '^$$' -bench . -benchtime 0.5s $(PARTS) >> $$old/new.txt || break; \
	done; \
	go run golang.org/x/perf/cmd/benchstat@$(BENCHSTAT) $$old/old.txt $$old/new.txt; \
	code=$$?; git worktree remove --force $$old/src; rm -rf $$old; exit $$code

# Whole commands only, beside those of the last release, if there is one.
bench-release: build
	@last=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) || { go run ./packaging/bench $(TRACES); exit; }; \
	old=$$(mktemp -d) && git worktree add -q --detach $$old $$last && \
	(cd $$old && CGO_ENABLED=0 go build -o tracefix ./cmd/tracefix) && go run ./packaging/bench -old $$old/tracefix $(TRACES); \
	code=$$?; git worktree remove --force $$old; exit $$code

golden:
	go test ./... -update

# The README's first command, on a trace in testdata.
demo:
	@dir=$$(mktemp -d) && go run ./cmd/tracefix repair testdata/chain.chromium.json.zst -o $$dir/fixed.chromium.json && rm -r $$dir

# The program, symbols and all: 25 MB are aimed at and not reached; it must not grow beyond what it has now.
# kong and html/template call methods by their names, so that the linker keeps every exported method
# of all types in interfaces: that is 3 MB, and what the client of object stores drags in another 2.
# The weights of pprof, speedscope and folded stacks took 60 KB, those of ndjson and gates that name a trace another 50, errors, ends
# and panics that a service can rely on 26; what collect-linux tells and lacks 33, what a recorder of .NET 9 does not tell of samples,
# collections where events were lost, and requests that were open when a recording began 42;
# connections that tell who served a request 53, the processes of a machine and what is read again of them 48;
# requests that were sent again, and what a task or a thread works for, 6, turns of a recursion and votes that are counted once 24,
# samples that are repaired before other events, and lists that cost no square of their length, and summaries of a stretch, 18;
# work that cut stacks and continuations do, and damage and processes that cost no square of the file, 25, most of it alignment;
# outputs that would take the place of an input, weights below nothing, flags that are refused and nesting that costs no
# square, 20, most of it alignment; root frames that a method never stands below 30, two thirds of it alignment;
# losses in copies of v6, deep stacks that cost no square there and in comparisons, and later versions of v6, 30;
# flows that nothing was handed to, and task events in code that inlines, 35, most of it alignment; requests without ids
# that gave up, and whose answer it was, 35; answers that cut stacks contest, and a faster search, 25, most of it
# alignment; how long the recorder took for a stack 55; blocks that nobody knows and what goes on behind a broken event, names
# however escaped, ids of processes and votes on trial 60, half of it alignment; objects of v4 that nobody knows, definitions
# with plain headers, large blocks in copies, damage in comparisons and stacks that share nothing 40, most of it alignment;
# requests that a handler sends elsewhere or twice, spans without an address, definitions that are missing and what was
# allocated without ticks 60; awaits that events without ends tell, what a version that was asked for tells, and types that were not
# told in converted files 40; activities of any names and without ids of their own, who passes on the headers of its client,
# waits without an end and pools that cannot grow 63, half of it alignment; integers that were written wider than declared, headers
# of blocks that were hit, what threads were started for, figures that nothing tells, requests under way before the recording
# and what makes time unknown 110; errors of requests and mixes of routes in comparisons, archives in pipes, and what perf script
# prints with other flags 80; what is compiled for requests, waits for locks in comparisons, awaits of tasks that are joined, and ends of
# tars 70, less 60 of debug/pe, which is not linked any more. The path of the checkout makes some KB of difference.
size: build
	@n=$$(wc -c < bin/tracefix) && echo "$$n bytes" && [ $$n -le 32050000 ]

# What a release holds beside the programs: man page (with version and date of the commit), completions, licences.
extras:
	rm -rf dist-extras && mkdir -p dist-extras/man dist-extras/completions
	go build $(RELEASE_FLAGS) -o bin/tracefix ./cmd/tracefix
	bin/tracefix man | gzip -9n > dist-extras/man/tracefix.1.gz
	for s in bash zsh fish powershell; do bin/tracefix completion $$s > dist-extras/completions/tracefix.$$s || exit 1; done
	mv dist-extras/completions/tracefix.zsh dist-extras/completions/_tracefix
	mv dist-extras/completions/tracefix.powershell dist-extras/completions/tracefix.ps1
	GOOS=windows go build -o bin/tracefix.exe ./cmd/tracefix
	go run ./packaging/notice bin/tracefix bin/tracefix.exe > dist-extras/NOTICE

# Programs that are built on first use. This goreleaser is the newest that the Go of go.mod builds.
GORELEASER = v2.15.4
KO = v0.19.1
APIDIFF = v0.0.0-20261014143641-f0251eb4aa3e

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

# The whole release but for publishing, into dist/. The image is made by `make image`: in a dry run
# goreleaser hands it to a Docker daemon.
release-dry:
	go run github.com/goreleaser/goreleaser/v2@$(GORELEASER) release --snapshot --clean --skip=ko,publish

# The container image for both processors, as an OCI layout in dist-image; BASE is another base image.
image:
	rm -rf dist-image
	KO_DOCKER_REPO=tracefix KO_DEFAULTBASEIMAGE=$(or $(BASE),gcr.io/distroless/static-debian12:nonroot) SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
	  go run github.com/google/ko@$(KO) build --bare --push=false --oci-layout-path=dist-image --platform=linux/amd64,linux/arm64 --sbom=none ./cmd/tracefix

# Known vulnerabilities in what the program calls.
vuln:
	go run golang.org/x/vuln/cmd/govulncheck@latest ./...

# The six systems that are released compile, tests included.
cross:
	@for t in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do \
	  echo $$t; CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go vet ./... || exit 1; \
	done

# Incompatible changes of the Go API since the last release, or since BASE. Before 1.0 they are
# told; from then on they fail.
apidiff:
	@last=$${BASE:-$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)} && [ -n "$$last" ] || { echo "no release yet: nothing to compare with"; exit 0; }; \
	old=$$(mktemp -d) && git worktree add -q --detach $$old/src $$last && trap 'git worktree remove --force $$old/src; rm -rf $$old' EXIT && \
	GOBIN=$$old go install golang.org/x/exp/cmd/apidiff@$(APIDIFF) && module=$$(go list -m) && \
	(cd $$old/src && $$old/apidiff -m -w $$old/api $$module >/dev/null 2>&1) && \
	$$old/apidiff -m -incompatible $$old/api $$module > $$old/changes 2>/dev/null; code=$$?; [ $$code = 0 ] || exit $$code; \
	grep -v '^[! ]' $$old/changes | grep -vE '^(- )?\./(cmd|packaging|examples)/' || { echo "no incompatible change since $$last"; exit 0; }; \
	case $$last in v[1-9]*) exit 1 ;; esac
