#!/bin/sh
# Compares `bloomery dedupe` with `sort -u` and `awk '!seen[$0]++'`, with cat and wc
# as the floor, and prints one Markdown table.
#
#	sh bench/dedupe.sh
#	N=1000000 RUNS=5 sh bench/dedupe.sh
#
# The input is N shuffled URL lines of about 80 bytes, a third of them repeats, the
# same on every machine. Every command reads the same file from the page cache and
# writes to /dev/null, and then again through a pipe. The runs of the commands
# alternate; the table has medians. Needs sh, awk, sort and go, and free space of
# about three times the input in TMPDIR.
set -eu
export LC_ALL=C

N=${N:-10000000}
RUNS=${RUNS:-3}
STATE=${STATE:-100000000}

cd "$(dirname "$0")/.."
dir=$(mktemp -d "${TMPDIR:-/tmp}/bloomery-dedupe.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
lines=$dir/lines

say() { echo "$@" >&2; }

# The first N-D of D different lines occur twice. Their order is a permutation of
# 0..N-1: four Feistel rounds on the smallest square of a power of two that is at
# least N, repeated until the result is below N.
generate() {
	awk -v N="$N" '
		function mix(r, key) { return int((r + key) * (r + key) * 7919 / 64) % side }
		function shuffled(i,  l, r, t, key) {
			do {
				l = int(i / side); r = i % side
				for (key = 101; key <= 404; key += 101) { t = (l + mix(r, key)) % side; l = r; r = t }
				i = l * side + r
			} while (i >= N)
			return i
		}
		BEGIN {
			for (side = 1; side * side < N; side *= 2);
			D = N - int(N / 3)
			for (j = 0; j < N; j++) {
				id = shuffled(j) % D
				x = (id * 48271 + 11) % 2147483647
				y = (x * 16807 + 7) % 2147483647
				printf "https://site-%04d.example.com/catalogue/%03d/item-%09d?s=%08x&page=%d\n", x % 9973, y % 997, id, y, x % 89
			}
		}'
}

# run FILE NAME: runs the command NAME and appends its time and memory to FILE.
run() {
	case $2 in
	dedupe-n) "$dir/peak" "$1" "$dir/bloomery" dedupe -n "$N" "$lines" ;;
	dedupe)   "$dir/peak" "$1" "$dir/bloomery" dedupe "$lines" ;;
	check)    "$dir/peak" "$1" "$dir/bloomery" check -c "$dir/built.bloom" "$lines" ;;
	sort)     "$dir/peak" "$1" sort -u -T "$dir" "$lines" ;;
	awk)      "$dir/peak" "$1" awk '!seen[$0]++' "$lines" ;;
	cat)      "$dir/peak" "$1" cat "$lines" ;;
	wc)       "$dir/peak" "$1" wc -l "$lines" ;;
	esac
}

title() {
	case $1 in
	dedupe-n) echo "\`bloomery dedupe -n $N\`" ;;
	dedupe)   echo "\`bloomery dedupe\` (grows)" ;;
	check)    echo "\`bloomery check -c\` of a filter of these lines" ;;
	sort)     echo "\`LC_ALL=C sort -u\`" ;;
	awk)      echo "\`awk '!seen[\$0]++'\`" ;;
	cat)      echo "\`cat\`" ;;
	wc)       echo "\`wc -l\`" ;;
	esac
}

# median FILE COLUMN
median() {
	awk -v c="$2" '{ print $c }' "$1" | sort -n | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'
}

# divide A B
divide() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a / b }'; }

verify() {
	say "verifying the outputs ..."
	sort -u -T "$dir" "$lines" >"$dir/sorted"
	"$dir/bloomery" dedupe -n "$N" "$lines" >"$dir/ours"
	distinct=$(wc -l <"$dir/sorted" | tr -d ' ')
	ours=$(wc -l <"$dir/ours" | tr -d ' ')
	sort -T "$dir" "$dir/ours" | comm -3 - "$dir/sorted" >"$dir/differ"
	extra=$(grep -c '^[^	]' "$dir/differ" || true)
	lost=$(grep -c '^	' "$dir/differ" || true)
	order="the order was not compared"
	if [ "$lost" = 0 ]; then
		if awk '!seen[$0]++' "$lines" | cmp -s - "$dir/ours"; then
			order="byte for byte what awk prints"
		else
			order="NOT WHAT AWK PRINTS"
		fi
	fi
	echo "Outputs: $distinct different lines by \`sort -u\`, $ours by \`bloomery dedupe\`: $lost lost to false positives, $extra printed twice or invented; $order."
	[ "$extra" = 0 ] && [ "$order" != "NOT WHAT AWK PRINTS" ]
}

model=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo 2>/dev/null || sysctl -n machdep.cpu.brand_string 2>/dev/null || true)
say "building ..."
go build -o "$dir/bloomery" ./cmd/bloomery
go build -o "$dir/peak" bench/peak/main.go
say "generating $N lines ..."
generate >"$lines"
bytes=$(wc -c <"$lines" | tr -d ' ')
cat "$lines" >/dev/null

"$dir/bloomery" build -o "$dir/built.bloom" -n "$N" -p 1e-6 "$lines" 2>/dev/null

names="dedupe-n dedupe check sort awk cat wc"
i=1
while [ "$i" -le "$RUNS" ]; do
	for name in $names; do
		say "run $i of $RUNS: $name"
		run "$dir/$name.null" "$name" >/dev/null
		run "$dir/$name.pipe" "$name" | cat >/dev/null
	done
	i=$((i + 1))
done
checked=$(verify) || { echo "$checked"; say "the outputs are wrong"; exit 1; }

echo "$N lines, $bytes bytes, a third of the lines repeats; ${model:-unknown CPU}, $(getconf _NPROCESSORS_ONLN) cores; $(go version | awk '{ print $3, $4 }'); $(uname -s); $(awk -W version 2>/dev/null </dev/null | sed 1q); $(date -u +%Y-%m-%d). Median of $RUNS runs, the input in the page cache."
echo
echo "| command | to /dev/null | sort -u takes | awk takes | through a pipe | sort -u takes | awk takes | CPU time | peak memory |"
echo "|---|---|---|---|---|---|---|---|---|"
for name in $names; do
	printf '| %s ' "$(title "$name")"
	for to in null pipe; do
		time=$(median "$dir/$name.$to" 1)
		printf '| %.2f s | %s x | %s x ' "$time" "$(divide "$(median "$dir/sort.$to" 1)" "$time")" "$(divide "$(median "$dir/awk.$to" 1)" "$time")"
	done
	memory=$(cat "$dir/$name.null" "$dir/$name.pipe" | awk '$3 > max { max = $3 } END { printf "%.0f", max / 1024 }')
	printf '| %.2f s | %s MiB |\n' "$(median "$dir/$name.null" 2)" "$memory"
done
filter=$("$dir/bloomery" plan -n "$N" -p 1e-6 | awk '/^memory/ { gsub(",", ""); print $2 }')
echo
echo "The filter of \`-n $N\` alone takes $((filter / 1048576)) MiB."

# A state of STATE keys, and one new line.
say "building a state of $STATE keys ..."
awk -v n="$STATE" 'BEGIN { for (i = 0; i < n; i++) print i * 7919 }' | "$dir/bloomery" dedupe -c -n "$STATE" --state "$dir/state" >/dev/null 2>&1 || true
i=1
while [ "$i" -le 11 ]; do
	echo "a line of its own $i" | "$dir/peak" "$dir/state.times" "$dir/bloomery" dedupe --state "$dir/state" >/dev/null
	i=$((i + 1))
done
echo
echo "One new line against a state of $STATE keys, opened, changed and made durable: $(awk -v t="$(median "$dir/state.times" 1)" 'BEGIN { printf "%.0f", t * 1000 }') ms, median of 11 ($(wc -c <"$dir/state" | tr -d ' ') bytes)."
echo
echo "$checked"
