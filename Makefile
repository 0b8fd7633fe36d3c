# make check is what a change must pass; CI runs the same.
.PHONY: check build test race fuzz bench golden demo

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

bench:
	go test -run '^$$' -bench . -benchtime 2s ./...

golden:
	go test ./... -update

# The README's first command, on a trace in testdata.
demo:
	@dir=$$(mktemp -d) && go run ./cmd/tracefix repair testdata/chain.chromium.json.zst -o $$dir/fixed.chromium.json && rm -r $$dir
