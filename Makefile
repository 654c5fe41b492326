# Needs Go, make and a POSIX shell; `make test` also a C compiler and redis-tools.
# It installs what is missing where it can, and says so before. Variables can be set on the command line: make fuzz FUZZTIME=10s

GO        ?= go
FUZZTIME  ?= 1m
RACEFLAGS ?=#         more flags for the race stage, such as -short
BENCHFLAGS ?=#        of make bench and its kin, such as '-n 1e6 -rounds 3'; see bench/main.go
TIMEOUT   ?= 20m#     for the tests of one package: only one that hangs should meet it
GIB       ?= 1#       of make bench-latency: the filters' size
CYCLES    ?= 1000#    of make crash: kills at each level of durability
POWERCUTS ?= 50000#   of make power-simulated
CUTS      ?= 60#      of make power: power cuts at each level
PORTABLE  ?= Golden|Everywhere|Processor|Pinned|Vectors|SaveLoad|UpdateGap|UpdateRefuses|UpdateNoRoom|OpenUpdate|OpenScalable|Formula|Sizing|LogNearest#  of make other-processors
SOAKTIME  ?= 10m#     of make soak, for each load
SOAKFLAGS ?=#         of make soak, such as -parallel and -data; see bench/soak/main.go
RACETIME  ?= 40m#     the same under the race detector, which is several times slower

.DEFAULT_GOAL := help
# The stages of `make test` come in order, even under -j: a compiler that complains
# in the middle of another stage's output helps nobody.
.NOTPARALLEL:
.PHONY: help build run tour test test-quick test-all compiler redis fmt vet 32-bit unit race purego race-all purego-all other-processors bench bench-full bench-split bench-sync bench-bulk bench-charts charts bench-dedupe bench-server bench-durability bench-latency bench-restart crash power power-simulated interop rates release release-check soak fuzz fuzz-readers ten-billion clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The first build downloads the modules that the program needs and compiles them.
# Go stamps the commit into the binary, and fails where git exists but may not read
# the tree (another owner, as in containers). Then build without the stamp.
build: ## bin/bloomery
	@echo "== build bin/bloomery$$([ -x bin/bloomery ] || echo ': the first time it downloads and compiles what it needs, which takes a minute or two')"
	@vcs=; git status >/dev/null 2>&1 || vcs=-buildvcs=false; \
	$(GO) build $$vcs -o bin/bloomery ./cmd/bloomery

run: build ## a tour: builds bin/bloomery and shows it at work on real URLs
	@echo "== compile the tour"
	@$(GO) run ./internal/tour -bloomery bin/bloomery -urls testdata/urls.txt.gz

tour: build ## draws the beginning of make run: docs/tour.svg
	@$(GO) run ./internal/tour -bloomery bin/bloomery -urls testdata/urls.txt.gz -svg docs/tour.svg

# Ends with go test, so that the last lines are its verdict.
test: compiler redis fmt vet 32-bit unit race purego ## everything that must pass: gofmt, vet, tests, as 32 bits, with the race detector, in pure Go (docs/testing.md)

test-quick: fmt vet ## its quick part: gofmt, vet, and the tests without their long ones; installs nothing
	@echo "== go test -short"
	@skip='^$$'; if ! command -v redis-cli >/dev/null || ! command -v redis-benchmark >/dev/null; then \
		skip='^Test(RedisCLI|RedisBenchmark)'; echo "   (without those that need redis-cli and redis-benchmark, which are not there)"; \
	fi; \
	$(GO) test -short -skip "$$skip" -timeout $(TIMEOUT) ./...

# The race detector links C. Asks Go which compiler that is, and tries it on a header,
# because a gcc without libc6-dev is no use either.
compiler:
	@works() { echo '#include <stdlib.h>' | $$($(GO) env CC) -E -x c - >/dev/null 2>&1; }; \
	works && exit 0; \
	echo "== there is no working C compiler, which the race detector needs: apt-get installs gcc and libc6-dev"; \
	if ! command -v apt-get >/dev/null; then \
		echo "make test: no working C compiler and no apt-get: install a C compiler with its headers, then try again" >&2; exit 1; \
	elif [ "$$(id -u)" = 0 ]; then sudo=; \
	elif command -v sudo >/dev/null; then sudo=sudo; \
	else \
		echo "make test: no working C compiler, and neither root nor sudo to install one: install gcc and libc6-dev, then try again" >&2; exit 1; \
	fi; \
	$$sudo apt-get update && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y gcc libc6-dev; \
	works || { echo "make test: still no working C compiler: 'go env CC' must name one that finds stdlib.h" >&2; exit 1; }

# The clients redis-cli and redis-benchmark, with which the server is tested. Their
# package has no server.
redis:
	@command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null && exit 0; \
	echo "== there is no redis-cli or redis-benchmark, with which the server is tested: apt-get installs redis-tools"; \
	if ! command -v apt-get >/dev/null; then \
		echo "make test: no redis-cli and no apt-get: install redis-cli and redis-benchmark, then try again" >&2; exit 1; \
	elif [ "$$(id -u)" = 0 ]; then sudo=; \
	elif command -v sudo >/dev/null; then sudo=sudo; \
	else \
		echo "make test: no redis-cli, and neither root nor sudo to install it: install redis-tools, then try again" >&2; exit 1; \
	fi; \
	$$sudo apt-get update && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-tools

# The gofmt of the Go in use, which need not be the first one in PATH.
fmt:
	@echo "== gofmt"
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) || exit 1; \
	[ -z "$$files" ] || { echo "not gofmt'd (run gofmt -w on them):" >&2; echo "$$files" >&2; exit 1; }

vet:
	@echo "== go vet"
	@$(GO) vet ./...

# What each stage of the tests runs. docs/testing.md has the table, and a test in
# internal/tidy holds it to these lists.
#
# RACED are the packages with goroutines of their own: the race detector sees data
# races, and there are none in code that runs on one goroutine. It makes tests ten
# times as slow and compiles the standard library once more, which is much of a cold run.
# NOTRACED are tests of these packages that run on one goroutine, or repeat the same
# steps thousands of times, and would take longest: make race-all runs them.
RACED    = . ./classic ./cmd/bloomery ./internal/filterfile ./internal/kernel ./internal/lines ./internal/memory ./redisbloom ./server ./store
NOTRACED ?= Growing(Few)?$$|EveryByte|Plan|Vectors|Pinned|ReportEstimates|JavaBitSet|LayersFitInto|UpdateDiskFails|Truncated|WindowBurst|PowerCuts|Faults|BitFlips|Repair$$|Script

# TWINS are the packages that run other code without assembly, in the package or
# below it.
TWINS = . ./classic ./interop ./internal/kernel ./internal/scheme ./redisbloom

# BITS32 are the packages whose sizes, formats and arithmetic could depend on the
# width of an int. SLOW are tests that have nothing to do with it.
BITS32 = . ./classic ./interop ./internal/elementary ./internal/filterfile ./internal/kernel ./internal/rate ./internal/scheme ./internal/sizing ./redisbloom
SLOW  ?= Rate|Truncated|EveryByte|AtItsLimit|OneWinner

unit:
	@echo "== go test, with the long tests"
	@BLOOMERY_TESTS=all $(GO) test -timeout $(TIMEOUT) ./...

race:
	@echo "== go test -race $(RACEFLAGS)"
	@CGO_ENABLED=1 $(GO) test -race $(RACEFLAGS) -skip '$(NOTRACED)' -timeout $(RACETIME) $(RACED)

purego:
	@echo "== go test -tags purego"
	@$(GO) test -tags purego -timeout $(TIMEOUT) $(TWINS)

# A CPU of amd64 runs 386 as well, with addresses and int of 32 bits, and with other
# code for exp and log in package math.
32-bit:
	@echo "== go test, GOARCH=386"
	@if [ "$$($(GO) env GOHOSTOS)/$$($(GO) env GOHOSTARCH)" != linux/amd64 ]; then echo "not run: this is not Linux on amd64"; exit 0; fi; \
	CGO_ENABLED=0 GOARCH=386 $(GO) test -short -skip '$(SLOW)' -timeout $(TIMEOUT) $(BITS32)

# All packages but the one that tests the text of the tree: neither the race
# detector nor pure Go changes that.
CODE = $$($(GO) list ./... | grep -v /internal/tidy)

race-all: compiler ## all tests of all packages with the race detector
	@echo "== go test -race, all packages"
	@BLOOMERY_TESTS=all CGO_ENABLED=1 $(GO) test -race -timeout $(RACETIME) $(CODE)

purego-all: ## all tests of all packages without assembly
	@echo "== go test -tags purego, all packages"
	@BLOOMERY_TESTS=all $(GO) test -tags purego -timeout $(TIMEOUT) $(CODE)

# In this order, as .NOTPARALLEL holds even under -j. About two hours.
test-all: test race-all purego-all other-processors rates power-simulated fuzz ## what a nightly run does: make test, then everything with the race detector, in pure Go, on other processors, the full rate grid, power cuts, and every fuzz target

# arm64 and s390x fuse floating-point operations, and s390x is big-endian. The small
# packages run whole. 386 is the stage 32-bit: programs in Go crash in qemu-i386.
other-processors: ## the same bits and files on arm64 and s390x, under qemu-user, which it installs
	@command -v qemu-aarch64-static >/dev/null && command -v qemu-s390x-static >/dev/null || { \
		echo "== install qemu-user-static"; \
		if ! command -v apt-get >/dev/null; then \
			echo "make other-processors: no qemu-aarch64-static and no apt-get: install qemu-user-static, then try again" >&2; exit 1; \
		elif [ "$$(id -u)" = 0 ]; then sudo=; \
		elif command -v sudo >/dev/null; then sudo=sudo; \
		else \
			echo "make other-processors: no qemu-aarch64-static, and neither root nor sudo to install it: install qemu-user-static, then try again" >&2; exit 1; \
		fi; \
		$$sudo apt-get update && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends qemu-user-static || exit 1; \
	}
	@for pair in arm64:aarch64 s390x:s390x; do \
		echo "== go test, GOARCH=$${pair%:*}"; \
		test="env CGO_ENABLED=0 GOARCH=$${pair%:*} $(GO) test -exec qemu-$${pair#*:}-static -short -timeout 20m"; \
		$$test -run '$(PORTABLE)' . ./classic ./redisbloom ./interop || exit 1; \
		$$test ./internal/elementary ./internal/filterfile ./internal/rate ./internal/scheme || exit 1; \
	done
	@echo "== go build, GOOS=js GOARCH=wasm"; GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) build ./...

# bench/ is a module of its own, so that the library does not depend on its rivals.
bench: ## us beside the other Bloom filters in Go, at 1e5 and 1e7 keys
	@cd bench && $(GO) run . $(BENCHFLAGS)

bench-full: ## the same with 1e8 keys, too: wants 14 GB of free memory
	@cd bench && $(GO) run . -n 1e5,1e7,1e8 $(BENCHFLAGS)

bench-split: ## SplitBlock beside parquet-go
	@cd bench && $(GO) run . -only split $(BENCHFLAGS)

bench-sync: ## Shared beside Filter, and two goroutines beside one
	@cd bench && $(GO) run . -only sync $(BENCHFLAGS)

bench-bulk: ## a billion keys by Bulk, beside batches of adds: wants 8 GB of free memory
	@cd bench && $(GO) run . -only bulk $(BENCHFLAGS)

bench-charts: ## measures for the charts of docs/ (speed.tsv) and draws them
	@cd bench && $(GO) run . -charts ../docs $(BENCHFLAGS)

charts: ## draws the charts of docs/ again, from the last measurement
	@cd bench && $(GO) run . -draw ../docs

bench-dedupe: ## dedupe, sort -u, awk and others (bench/dedupe.sh)
	@sh bench/dedupe.sh

bench-durability: ## what durability costs the server, at each level (bench/durability.sh)
	@sh bench/durability.sh

bench-latency: build ## how long others wait beside snapshots, merges, dumps and deletions of GIB (1) of filters: wants five times that of memory and disk
	@cd bench && $(GO) run ./latency -bloomery ../bin/bloomery -gib $(GIB)

bench-restart: ## how long a store takes to open, beside reading its snapshot: wants 8 GB of free memory and disk
	@cd bench && $(GO) run ./restart

bench-server: ## serve beside redis-server, by redis-benchmark (bench/server.sh)
	@sh bench/server.sh

# Neither is part of `make test`: they take minutes. Tables for docs/reliability.md.
crash: build ## kill -9 of serve under load, CYCLES (1000) at each durability: is all there that was acknowledged?
	@cd bench/crash && $(GO) run . -bloomery ../../bin/bloomery -cycles $(CYCLES) kill

power: build ## the same by power cuts (CUTS), on a file system that drops what was not synced: wants root and /dev/fuse
	@cd bench/crash && $(GO) run . -bloomery ../../bin/bloomery -cuts $(CUTS) power

soak: build ## the server in control groups, near its memory ceiling for SOAKTIME (10m) under each of four loads: wants root
	@cd bench && $(GO) run ./soak -bloomery ../bin/bloomery -time $(SOAKTIME) $(SOAKFLAGS)

power-simulated: ## POWERCUTS (50000) power cuts of a simulated disk
	@$(GO) test ./store -run 'PowerCuts$$' -powercuts=$(POWERCUTS) -timeout 40m -v

# Java, Node.js and Redis come from apt-get, packages of JavaScript into the cache.
interop: ## every format, both ways, with the programs themselves, which it installs
	@dir="$${XDG_CACHE_HOME:-$$HOME/.cache}/bloomery-interop"; \
	sh bench/interop/install.sh "$$dir" && \
	sh bench/interop/noderedis.sh "$$dir" && cd bench/interop && \
	$(GO) run . -guava "$${GUAVA:-/usr/share/java/guava.jar}" -modules "$$dir/node_modules" -docs ../../docs/interop.md

# The package comes before -rates: after a flag of the test's own, go test takes what
# follows for the test's arguments.
rates: ## measures every layout's rate against its formula; the test writes the tables of docs/
	@$(GO) test -v -run 'TestRateGrid|TestArrivalRates' -timeout 90m . -rates=full

# Its tools are Go modules, pinned in packaging/release/go.mod.
release: ## what users install, for every system, from the commit that is checked out, into dist/ (packaging/README.md)
	@GO='$(GO)' sh packaging/release/release.sh

release-check: ## builds it twice, compares, installs it into a clean Debian and tries it; then other-processors and 32-bit: wants root and Debian
	@GO='$(GO)' sh packaging/release/check.sh
	@$(MAKE) --no-print-directory other-processors 32-bit

# go test fuzzes one target at a time. bench/ is a module of its own; /dev/null makes
# grep name the file even if there is only one, and keeps go off the loop's input.
fuzz: ## every fuzz target for FUZZTIME (1m) each
	@find . -path ./bench -prune -o -name '*_test.go' -exec grep '^func Fuzz' /dev/null {} + | \
	sed 's|/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*| \1|' | while read -r dir target; do \
		echo "== $$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$dir" </dev/null || exit 1; \
	done

fuzz-readers: ## ten minutes over every reader of filter files, with a table of what was tried
	@sh bench/fuzz.sh

ten-billion: ## builds, saves, maps and checks a filter of ten billion keys: wants 15 GB of memory and of disk
	@cd bench && $(GO) run ./tenbillion

clean: ## removes bin/ and dist/
	rm -rf bin dist
