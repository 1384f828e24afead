# What one does with this tree. Nothing here needs root or installs anything;
# servers for tests, the demo and the benchmark are fetched once into the user's
# cache folder (see test/servers).

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Tests start real servers: more packages at a time than this only wait for the
# same two processors.
TEST_P       ?= 2
TEST_TOTAL   ?= 45m
TEST_FLAGS   ?=
# The package that takes longest begins first.
PACKAGES     ?= ./test/blackbox ./...

.PHONY: build test test-long race vet fmt-check fmt lint servers demo bench docs clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/copydb ./cmd/copydb

# Unit and black-box tests on servers of both families. The last line counts them.
test:
	$(GO) run ./test/runner -total $(TEST_TOTAL) -- -p $(TEST_P) -timeout $(TEST_TOTAL) $(TEST_FLAGS) $(PACKAGES)

# The same with the long series: hours rather than minutes.
test-long:
	COPYDB_TEST_LONG=1 $(GO) run ./test/runner -- -p $(TEST_P) -timeout 6h $(TEST_FLAGS) $(PACKAGES)

# The race detector needs a C compiler.
race:
	CGO_ENABLED=1 $(GO) run ./test/runner -- -race -p $(TEST_P) -timeout 40m $(TEST_FLAGS) $(PACKAGES)

vet:
	$(GO) vet ./...
	$(GO) vet -tags holdpoints ./...

fmt-check:
	@files=$$(gofmt -l cmd copydb dumper internal state streamer test); \
	if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi

fmt:
	gofmt -w cmd copydb dumper internal state streamer test

# The linter has a module of its own, so that the product requires none of what it requires.
bin/golangci-lint: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: bin/golangci-lint
	bin/golangci-lint run ./...
	bin/golangci-lint run --build-tags holdpoints ./internal/hold/...

# A source and a target to play with, until Ctrl-C: make servers KIND=mariadb-11.8
KIND ?= mysql
servers:
	$(GO) run ./test/servers/cmd/servers -kind $(KIND)

# A copy from begin to end under writes, interrupted and resumed: make demo DEMO_KIND=mariadb-11.8
DEMO_KIND  ?= mysql
DEMO_FLAGS ?=
demo: build
	$(GO) run ./test/demo -copydb bin/copydb -kind $(DEMO_KIND) $(DEMO_FLAGS)

# copydb beside the dump pipe, mydumper + myloader and the load limit, in one run: make bench BENCH_FLAGS='-kinds mysql'
BENCH_FLAGS ?=
bench: build
	$(GO) run ./test/bench -copydb bin/copydb $(BENCH_FLAGS)

# The documents that are generated from tables in the code.
docs:
	$(GO) test ./copydb/config ./cmd/copydb -run 'IsCurrent' -update

clean:
	rm -rf bin
