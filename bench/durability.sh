#!/bin/sh
# Measures with redis-benchmark what durability costs `bloomery serve`: BF.ADD of
# random keys, without a log and at each level. Prints one Markdown table.
#
#	sh bench/durability.sh
#
# The levels alternate; the table has medians, and ratios to the server without a log
# in the same round. Needs what bench/server.sh needs.
set -eu
export LC_ALL=C
RUNS=${RUNS:-5}
N=${N:-8000000}
KEYS=${KEYS:-10000000}
PORT=${PORT:-7401}

cd "$(dirname "$0")/.."
dir=$(mktemp -d "${TMPDIR:-/tmp}/bloomery-durability.XXXXXX")
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
go build -o "$dir/bloomery" ./cmd/bloomery

levels="memory none everysec always"
port=$PORT
for level in $levels; do
	flags="--durability $level --data $dir/$level"
	if [ $level = memory ]; then flags=; fi
	"$dir/bloomery" serve --listen 127.0.0.1:$port --http off $flags 2>"$dir/$level.log" &
	pids="$pids $!"
	until redis-cli -p $port PING >/dev/null 2>&1; do sleep 0.1; done
	redis-cli -p $port BF.RESERVE seen 0.01 $KEYS >/dev/null
	port=$((port + 1))
done

# add PORT CLIENTS DEPTH: prints the adds per second.
add() {
	redis-benchmark --csv -p "$1" -c "$2" -P "$3" -n "$N" -r "$KEYS" BF.ADD seen key:__rand_int__ | tail -1 | awk -F'"' '{ print $4 }'
}

i=1
while [ "$i" -le "$RUNS" ]; do
	for shape in 50x64 8x100; do
		port=$PORT
		for level in $levels; do
			redis-cli -p $port DEL seen >/dev/null
			redis-cli -p $port BF.RESERVE seen 0.01 $KEYS >/dev/null
			rate=$(add $port ${shape%x*} ${shape#*x})
			echo "$rate" >>"$dir/$shape.$level"
			echo "round $i of $RUNS: $shape $level $rate" >&2
			port=$((port + 1))
		done
	done
	i=$((i + 1))
done

median() { sort -n | awk '{ x[NR] = $1 } END { print (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }
model=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo 2>/dev/null || true)
echo "BF.ADD of $KEYS different keys at random, $N requests a run, client and server on one machine: ${model:-unknown CPU}, $(getconf _NPROCESSORS_ONLN) cores; $(go version | awk '{ print $3, $4 }'); $(date -u +%Y-%m-%d). Median of $RUNS rounds."
echo

# floor ADDS: prints the nanoseconds per add that the system needs to write 16 bytes
# for each, ADDS at a time.
floor() {
	for i in 1 2 3 4 5 6 7 8 9; do
		start=$(date +%s%N)
		dd if=/dev/zero of="$dir/floor" bs=$((16 * $1)) count=5000 2>/dev/null
		echo "$1 $start $(date +%s%N)" | awk '{ print ($3 - $2) / 5000 / $1 }'
		rm "$dir/floor"
	done | median
}
awk -v one="$(floor 100)" -v all="$(floor 800)" -v rate="$(median <"$dir/8x100.memory")" 'BEGIN {
	printf "The bare writing of 16 bytes an add (dd), for each of 8 pipelines of 100 or for all at once, takes %.0f or %.0f ns an add: %.0f or %.0f%% of the time without a log.\n", one, all, one * rate / 1e7, all * rate / 1e7
}'
echo
echo "| | 50 connections, 64 in flight | of without | 8 connections, 100 in flight | of without |"
echo "|---|---|---|---|---|"
for level in $levels; do
	name="\`--durability $level\`"
	if [ $level = memory ]; then name="without a log"; fi
	printf '| %s ' "$name"
	for shape in 50x64 8x100; do
		printf '| %.0f/s | %.2f ' "$(median <"$dir/$shape.$level")" "$(paste "$dir/$shape.$level" "$dir/$shape.memory" | awk '{ print $1 / $2 }' | median)"
	done
	echo '|'
done
