# Needs Go, make and a POSIX shell; `make test` also a C compiler, redis-tools, nodejs and
# chromium-headless-shell.
# Missing tools are installed where possible, and announced first. Variables can be set on the command line: make fuzz FUZZTIME=10s

GO        ?= go
TEST       = $(GO) test -vet=off#  the stage vet has looked at all packages
# One package more than there are processors is tested at a time: the servers' tests often wait.
PACKAGES  ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null) || n=2; echo $$((n + 1)))
FUZZTIME  ?= 1m
RACEFLAGS ?=#         more flags for the race stage, such as -short
BENCHFLAGS ?=#        flags for make bench and its relatives, such as '-n 1e6 -rounds 3'; see bench/main.go
TIMEOUT   ?= 20m#     for the tests of one package: only a hang should reach it
GIB       ?= 1#       for make bench-latency: size of the filters
CYCLES    ?= 1000#    for make crash: kills at each durability level
POWERCUTS ?= 50000#   for make power-simulated
CLUSTERGIB ?= 4#      for make cluster-large
FAILOVERS ?= 2#       for make failover: how often each failure happens
CUTS      ?= 60#      for make power: power cuts at each level
PORTABLE  ?= Golden|Everywhere|Processor|Pinned|Vectors|SaveLoad|UpdateGap|UpdateRefuses|UpdateNoRoom|OpenUpdate|OpenScalable|Formula|Sizing|LogNearest#  for make other-processors
SOAKTIME  ?= 10m#     for make soak: time of each load
SOAKFLAGS ?=#         flags for make soak, such as -parallel and -data; see bench/soak/main.go
RACETIME  ?= 40m#     the same with the race detector, which is several times slower

.DEFAULT_GOAL := help
# The stages of `make test` run in order, even with -j, so that their outputs do not
# mix.
.NOTPARALLEL:
.PHONY: help build run tour test test-quick test-all tools compiler redis node npm chromium fmt vet 32-bit unit race purego browser browser-all screenshots race-all purego-all other-processors bench bench-full bench-split bench-sync bench-keys bench-cuckoo bench-counting bench-bulk bench-test bench-charts charts bench-dedupe bench-server bench-durability bench-latency bench-restart bench-cluster cluster-demo cluster-large crash power failover power-simulated interop rates release release-check soak fuzz fuzz-readers ten-billion clean

help: ## prints this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The first build downloads and compiles the modules that the program needs. Go stamps
# the commit into the binary, which fails if git may not read the tree because of its
# owner, as in containers. Then it builds without the stamp.
build: ## builds bin/bloomery
	@echo "== build bin/bloomery$$([ -x bin/bloomery ] || echo ': the first time it downloads and compiles what it needs, which takes a minute or two')"
	@vcs=; git status >/dev/null 2>&1 || vcs=-buildvcs=false; \
	$(GO) build $$vcs -o bin/bloomery ./cmd/bloomery

run: build ## shows bin/bloomery at work on real URLs
	@echo "== compile the tour"
	@$(GO) run ./internal/tour -bloomery bin/bloomery -urls testdata/urls.txt.gz

tour: build ## draws the beginning of make run to docs/tour.svg
	@$(GO) run ./internal/tour -bloomery bin/bloomery -urls testdata/urls.txt.gz -svg docs/tour.svg

# go test comes last, so that the last lines are its verdict.
test: tools fmt vet 32-bit unit race purego browser ## runs everything that must pass: gofmt, vet, and the tests, also in 32 bits, with the race detector, in pure Go and in a browser (docs/testing.md)

test-quick: fmt vet ## runs the quick part: gofmt, vet, and the short tests; installs nothing
	@echo "== go test -short"
	@skip='^$$'; if ! command -v redis-cli >/dev/null || ! command -v redis-benchmark >/dev/null; then \
		skip='^Test(RedisCLI|RedisBenchmark)'; echo "   (without those that need redis-cli and redis-benchmark, which are missing)"; \
	fi; \
	packages=./...; if ! command -v node >/dev/null; then \
		packages=$$($(GO) list ./... | grep -v '/web$$'); echo "   (without those of web, which need node, which is missing)"; \
	fi; \
	$(GO) test -short -skip "$$skip" -timeout $(TIMEOUT) $$packages

# What the tests need besides Go, as far as it is missing.
tools:
	@GO="$(GO)" .ci/tools compiler redis node chromium

compiler redis node chromium npm:
	@GO="$(GO)" .ci/tools $@

# The gofmt of the Go in use, which may not be the first one in PATH.
fmt:
	@echo "== gofmt"
	@files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) || exit 1; \
	[ -z "$$files" ] || { echo "not gofmt'd (run gofmt -w on them):" >&2; echo "$$files" >&2; exit 1; }

vet:
	@echo "== go vet"
	@$(GO) vet ./...

# What each stage of the tests runs. docs/testing.md has a table, and a test in
# internal/tidy compares it with these lists.
#
# RACED are the packages that use several goroutines: code on one goroutine has no data
# races. The race detector makes tests ten times slower and compiles the standard
# library again, which is a large part of a cold run. The stores and the server come
# first, here and in unit, because they often wait: other packages run meanwhile.
# NOTRACED are tests of these packages that use one goroutine, or repeat the same steps
# thousands of times, and would take longest. make race-all runs them.
RACED    = ./store/redisstore ./server ./store . ./classic ./cmd/bloomery ./internal/filterfile ./internal/kernel ./internal/lines ./internal/memory ./redisbloom
NOTRACED ?= Growing(Few)?$$|EveryByte|Plan|Vectors|Pinned|ReportEstimates|JavaBitSet|LayersFitInto|UpdateDiskFails|Truncated|WindowBurst|PowerCuts|Faults|BitFlips|Repair$$|Script|AccountsAreTrue|WindowVerbs|MergeCuts|GrowthIsReplayed|RandomIsUniform|Checkpoints$$|RateGrid|Image$$|UsageAtRandom|RoomByBits|Taken$$|WindowModel|ScalableModel|ExceptionsModel|UpdatePowerFails|UpdateMarks|IntegersOf|KindsDamaged|Damage$$|ExampleScalable|Gauge$$|CheckForeignFiles|Modular|Placement|LocalInMemory/Memory|CountingModel|IsAsIfInOrder|RoundTrip$$|TestSets$$|ReportSamples|SaveLoadOpen|WindowForgets|DCSO|ScalableCompact|UpdateKilled|SparseFile|WindowRefuses|DamagedLog|SearchIsQuick|RestoreIsGranted|TrackingTable|HalfClosed|^TestModel$$|FullFileSystem|LoadSyncs|LoadInPieces|PushPull|^TestResume$$|LocalInDirectory/none|^TestWriteLive$$|ChunkLost|ClusterDown|TestChunks$$|Refusals|GatewayWithout|LoadDamaged|DirectoryLost|TestStore$$/Single|TestStore$$/Cluster,|CuckooRate|CuckooModel|RemovalModel|RemoveMany|CountersBatch|APIEventTime|SnapshotExact|RunTorn|CompactTorn|CuckooPieces|BatchHashes|ScalableCounting(AtItsLimit|Churn)|HashesAtPageEnds

# TWINS are the packages that run different code without assembly, themselves or in a
# package they import.
# SAMEBITS are tests of these packages that pass or fail by the bits, which others
# compare with the twin's, and take long: rates, races, models, damaged files.
TWINS = . ./classic ./interop ./internal/kernel ./internal/scheme ./redisbloom
SAMEBITS ?= Rate|OneWinner|Winners|Keeps|Model$$|LayersFitInto|EveryByte|WindowVerbs|WindowRaces|ReportEstimates|ReportSamples|Truncated|AtItsLimit|ExceptionsLimits|DroppedFilters|Update|SparseFile|KindsDamaged

# BITS32 are the packages whose sizes, formats and arithmetic could depend on the
# width of an int. SLOW are tests that do not depend on it.
BITS32 = . ./classic ./interop ./internal/elementary ./internal/filterfile ./internal/kernel ./internal/rate ./internal/scheme ./internal/sizing ./redisbloom
SLOW  ?= Rate|Truncated|EveryByte|AtItsLimit|OneWinner|LayersFitInto|WindowVerbs|ReportEstimates|UpdateDiskFails|UpdatePowerFails|UpdateKilled|DroppedFilters|GrowingFew

unit:
	@echo "== go test, with the long tests"
	@BLOOMERY_TESTS=all $(TEST) -p $(PACKAGES) -timeout $(TIMEOUT) ./store/redisstore ./server ./store ./internal/tidy ./...

race:
	@echo "== go test -race $(RACEFLAGS)"
	@CGO_ENABLED=1 $(TEST) -race -p $(PACKAGES) $(RACEFLAGS) -skip '$(NOTRACED)' -timeout $(RACETIME) $(RACED)

purego:
	@echo "== go test -tags purego"
	@$(TEST) -tags purego -skip '$(SAMEBITS)' -timeout $(TIMEOUT) $(TWINS)

# web/browser is a separate module, so that the library does not depend on what drives
# the browser.
browser: chromium ## tests what browsers run, in Chromium, which it installs
	@echo "== go test in web/browser"
	@cd web/browser && $(GO) test -timeout $(TIMEOUT) -skip '$(SLOWPAGES)' ./...

# SLOWPAGES are the tests that look at every page in each width, theme and language, those
# that a busy machine fails, as they count frames, and those that take longest.
SLOWPAGES = EveryPage|Accessible|ConsolePictures|Frames|TenThousand|^TestGolden$$
browser-all: chromium node npm ## runs all tests of pages: also axe-core on each, frames a second, ten thousand filters, every golden file, 30,000 damaged ones
	@$(GO) test ./web -run 'TestHostile$$' -hostile 30000 -count 1 -v
	@cd web/browser && $(GO) test -count 1 -timeout $(TIMEOUT) -v ./...

screenshots: chromium ## draws the pictures of the pages in docs/
	@cd web/browser && $(GO) test -count 1 -run 'TestPictures$$' . -pictures "$(CURDIR)/docs"

# An amd64 CPU also runs 386, which has 32-bit addresses and ints, and different code
# for exp and log in package math.
32-bit:
	@echo "== go test, GOARCH=386"
	@if [ "$$($(GO) env GOHOSTOS)/$$($(GO) env GOHOSTARCH)" != linux/amd64 ]; then echo "not run: this is not Linux on amd64"; exit 0; fi; \
	CGO_ENABLED=0 GOARCH=386 $(TEST) -short -skip '$(SLOW)' -timeout $(TIMEOUT) $(BITS32)

# All packages except internal/tidy, which tests the source text.
CODE = $$($(GO) list ./... | grep -v /internal/tidy)

race-all: compiler ## runs all tests of all packages with the race detector
	@echo "== go test -race, all packages"
	@BLOOMERY_TESTS=all CGO_ENABLED=1 $(GO) test -race -timeout $(RACETIME) $(CODE)

purego-all: ## runs all tests of all packages without assembly
	@echo "== go test -tags purego, all packages"
	@BLOOMERY_TESTS=all $(GO) test -tags purego -timeout $(TIMEOUT) $(CODE)

# In this order, even with -j, because of .NOTPARALLEL. Takes about two hours.
test-all: test browser-all bench-test race-all purego-all other-processors rates power-simulated failover cluster-demo fuzz ## for nightly runs: make test, all tests of pages, the tests of bench/, then all tests with the race detector and in pure Go, other processors, the full rate grid, power cuts, failing clusters, and every fuzz target

# arm64 and s390x fuse floating-point operations, and s390x is big-endian. The small
# packages run all their tests, but for CountersFar: of the 16 TiB that it maps, qemu-user
# needs tables of more than 24 GB. 386 has the stage 32-bit: Go programs crash in
# qemu-i386.
other-processors: ## tests that bits and files are the same on arm64 and s390x, and the assembly for arm64, with qemu-user, which it installs
	@GO="$(GO)" .ci/tools qemu
	@for pair in arm64:aarch64 s390x:s390x; do \
		echo "== go test, GOARCH=$${pair%:*}"; \
		test="env CGO_ENABLED=0 GOARCH=$${pair%:*} $(GO) test -exec qemu-$${pair#*:}-static -short -timeout 20m"; \
		$$test -run '$(PORTABLE)' . ./classic ./redisbloom ./interop || exit 1; \
		$$test -run 'Hashes|Keys' ./internal/kernel || exit 1; \
		$$test -skip CountersFar ./internal/elementary ./internal/filterfile ./internal/kernel ./internal/rate ./internal/scheme || exit 1; \
	done
	@echo "== go build, GOOS=js GOARCH=wasm"; GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) build ./...

# bench/ is a separate module, so that the library does not depend on its rivals.
bench: ## compares our filters with others in Go, at 1e5 and 1e7 keys
	@cd bench && $(GO) run . $(BENCHFLAGS)

bench-full: ## the same, also at 1e8 keys: needs 14 GB of free memory
	@cd bench && $(GO) run . -n 1e5,1e7,1e8 $(BENCHFLAGS)

bench-split: ## compares SplitBlock with parquet-go
	@cd bench && $(GO) run . -only split $(BENCHFLAGS)

bench-sync: ## compares Shared with Filter, and two goroutines with one
	@cd bench && $(GO) run . -only sync $(BENCHFLAGS)

bench-keys: ## measures what hashing keys of 16 to 100 bytes costs, also at 1e8 keys
	@cd bench && $(GO) run . -only keys -n 1e5,1e7,1e8 $(BENCHFLAGS)

bench-cuckoo: ## compares Cuckoo with other cuckoo filters, and with Counting
	@cd bench && $(GO) run . -only cuckoo $(BENCHFLAGS)

bench-counting: ## compares Counting with Filter, and with the least that its counters can cost
	@cd bench && $(GO) run . -only counting $(BENCHFLAGS)

bench-bulk: ## compares Bulk with batches of adds, for a billion keys: needs 8 GB of free memory
	@cd bench && $(GO) run . -only bulk $(BENCHFLAGS)

bench-test: ## vets and tests the modules in bench/: do the harnesses work, and are the charts up to date?
	@for module in bench bench/crash bench/interop bench/cluster; do \
		echo "== go vet and go test in $$module"; \
		(cd $$module && $(GO) vet ./... && $(GO) test ./...) || exit 1; \
	done

bench-charts: ## measures for the charts in docs/ (speed.tsv) and draws them
	@cd bench && $(GO) run . -charts ../docs $(BENCHFLAGS)

charts: ## draws the charts in docs/ again, from the last measurement
	@cd bench && $(GO) run . -draw ../docs

bench-dedupe: ## compares dedupe with sort -u, awk and others (bench/dedupe.sh)
	@sh bench/dedupe.sh

bench-durability: ## measures what durability costs the server, at each level (bench/durability.sh)
	@sh bench/durability.sh

bench-latency: build ## measures how long other clients wait during snapshots, merges, dumps and deletions of GIB (1) of filters: needs five times that of memory and of disk
	@cd bench && $(GO) run ./latency -bloomery ../bin/bloomery -gib $(GIB)

bench-restart: ## measures how long a store takes to open, compared with reading its snapshot: needs 8 GB of memory and of disk
	@cd bench && $(GO) run ./restart

bench-server: ## compares serve with redis-server, using redis-benchmark (bench/server.sh)
	@sh bench/server.sh

# The next four take minutes or more, so `make test` does not run them. They print the
# tables of docs/reliability.md.
crash: build ## kills serve (kill -9) under load, CYCLES (1000) times at each durability level, and checks that everything acknowledged is there
	@cd bench/crash && $(GO) run . -bloomery ../../bin/bloomery -cycles $(CYCLES) kill

failover: redis ## kills, pauses and cuts off servers of a Redis Cluster under load, FAILOVERS (2) times each, and counts the adds that were lost
	@$(GO) test ./store/redisstore -run 'TestFailover$$|TestGatewaysKilled' -failovers $(FAILOVERS) -count 1 -timeout 3h -v

cluster-demo: redis ## four crawlers share a filter in a Redis Cluster, and a master is killed under them
	@$(GO) test ./store/redisstore -run 'TestCrawlers$$' -demo -count 1 -v

cluster-large: redis ## fills and checks a filter of CLUSTERGIB (4) GiB in a Redis Cluster, which then loses a master; takes twice the memory
	@$(GO) test ./store/redisstore -run 'TestLarge$$' -gib $(CLUSTERGIB) -count 1 -timeout 1h -v

bench-cluster: redis ## compares filters in a Redis Cluster with go-zero's core/bloom, on the same servers
	@cd bench/cluster && $(GO) test -count 1 -v -timeout 30m $(BENCHFLAGS)

power: build ## the same with CUTS (60) power cuts, on a file system that drops what was not synced: needs root and /dev/fuse
	@cd bench/crash && $(GO) run . -bloomery ../../bin/bloomery -cuts $(CUTS) power

soak: build ## runs the server in control groups, near its memory ceiling for SOAKTIME (10m) under each of four loads: needs root
	@cd bench && $(GO) run ./soak -bloomery ../bin/bloomery -time $(SOAKTIME) $(SOAKFLAGS)

power-simulated: ## simulates POWERCUTS (50000) power cuts of a disk
	@$(GO) test ./store -run 'PowerCuts$$' -powercuts=$(POWERCUTS) -timeout 40m -v

# Java, Node.js and Redis come from apt-get; JavaScript packages go to the cache.
interop: ## tests every format in both directions with the original programs, which it installs
	@dir="$${XDG_CACHE_HOME:-$$HOME/.cache}/bloomery-interop"; \
	sh bench/interop/install.sh "$$dir" && \
	sh bench/interop/noderedis.sh "$$dir" && cd bench/interop && \
	$(GO) run . -guava "$${GUAVA:-/usr/share/java/guava.jar}" -modules "$$dir/node_modules" -docs ../../docs/interop.md

# The package precedes -rates, because go test passes everything after a test's own
# flag to the test.
rates: ## measures every layout's rate and compares it with its formula; the test writes the tables in docs/maths.md
	@$(GO) test -v -run 'TestRateGrid|TestArrivalRates' -timeout 90m . -rates=full

# The tools are Go modules, pinned in packaging/release/go.mod.
release: ## builds what users install, for every system, from the current commit, in dist/ (packaging/README.md)
	@GO='$(GO)' sh packaging/release/release.sh

release-check: ## builds it twice, compares, installs it in a clean Debian and tests it; then other-processors and 32-bit: needs root and Debian
	@GO='$(GO)' sh packaging/release/check.sh
	@$(MAKE) --no-print-directory other-processors 32-bit

# go test fuzzes one target at a time. bench/ is a separate module. With /dev/null,
# grep prints the file's name even if there is only one, and go does not read the
# loop's input.
fuzz: ## runs every fuzz target for FUZZTIME (1m)
	@find . -path ./bench -prune -o -name '*_test.go' -exec grep '^func Fuzz' /dev/null {} + | \
	sed 's|/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*| \1|' | while read -r dir target; do \
		echo "== $$dir $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "$$dir" </dev/null || exit 1; \
	done

fuzz-readers: ## fuzzes every reader of filter files, ten minutes in total, and prints a table
	@sh bench/fuzz.sh

ten-billion: ## builds, saves, maps and checks a filter of ten billion keys: needs 15 GB of memory and of disk
	@cd bench && $(GO) run ./tenbillion

clean: ## removes bin/ and dist/
	rm -rf bin dist
