#!/bin/sh
# Compares `bloomery serve` with redis-server on this machine, using redis-benchmark,
# and prints one Markdown table.
#
#	sh bench/server.sh
#	RUNS=5 N64=2000000 N1=400000 sh bench/server.sh
#	NAMES="get set ping cf-add cf-exists cf-del" sh bench/server.sh	# some rows; get and set must be among them
#
# The baseline is redis-server's GET of missing keys, which shows what one core can do
# with sockets: every figure comes with its ratio to the baseline of the same round.
# The commands alternate; the table has medians. The floor is PING, a command that
# does nothing, on either server. Needs sh, awk, go, redis-server and redis-benchmark
# (Debian: redis-server, redis-tools).
set -eu
export LC_ALL=C

RUNS=${RUNS:-3}
N64=${N64:-1000000} # requests with 64 in flight per connection
N1=${N1:-200000}    # requests with one in flight
CLIENTS=${CLIENTS:-50}
KEYS=${KEYS:-10000000}
REDIS_PORT=${REDIS_PORT:-7391}
PORT=${PORT:-7392}
FLAGS=${FLAGS:-} # more flags of `bloomery serve`

cd "$(dirname "$0")/.."
dir=$(mktemp -d "${TMPDIR:-/tmp}/bloomery-server.XXXXXX")
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || true; done; wait; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

say() { echo "$@" >&2; }

# start LOG COMMAND...: runs a server until the script exits.
start() {
	log=$1
	shift
	"$@" >"$dir/$log" 2>&1 &
	pids="$pids $!"
}

# ready PORT LOG: waits until a server listens.
ready() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		if redis-cli -p "$1" PING >/dev/null 2>&1; then return; fi
		sleep 0.3
	done
	say "no server on port $1:"
	cat "$dir/$2" >&2
	exit 1
}

hundred=$(awk 'BEGIN { for (i = 0; i < 100; i++) printf " key:%d:__rand_int__", i }')

# command NAME: prints the port and the command of a row.
command() {
	case $1 in
	get)          echo "$REDIS_PORT GET key:__rand_int__" ;;
	set)          echo "$REDIS_PORT SET key:__rand_int__ xxx" ;;
	redis-ping)   echo "$REDIS_PORT PING" ;;
	ping)         echo "$PORT PING" ;;
	exists)       echo "$PORT BF.EXISTS redisbloom key:__rand_int__" ;;
	add)          echo "$PORT BF.ADD redisbloom key:__rand_int__" ;;
	exists-paired) echo "$PORT BF.EXISTS paired key:__rand_int__" ;;
	add-paired)   echo "$PORT BF.ADD paired key:__rand_int__" ;;
	mexists)      echo "$PORT BF.MEXISTS redisbloom$hundred" ;;
	cf-add)       echo "$PORT CF.ADD cuckoo key:__rand_int__" ;;
	cf-exists)    echo "$PORT CF.EXISTS cuckoo key:__rand_int__" ;;
	cf-del)       echo "$PORT CF.DEL cuckoo key:__rand_int__" ;;
	add-counting) echo "$PORT BF.ADD counting key:__rand_int__" ;;
	exists-counting) echo "$PORT BF.EXISTS counting key:__rand_int__" ;;
	del-counting) echo "$PORT BF.DEL counting key:__rand_int__" ;;
	esac
}

title() {
	case $1 in
	get)          echo "redis-server: \`GET\`, missing keys" ;;
	set)          echo "redis-server: \`SET\`" ;;
	redis-ping)   echo "redis-server: \`PING\`" ;;
	ping)         echo "bloomery: \`PING\`" ;;
	exists)       echo "bloomery: \`BF.EXISTS\`" ;;
	add)          echo "bloomery: \`BF.ADD\`" ;;
	exists-paired) echo "bloomery: \`BF.EXISTS\`, LAYOUT PAIRED" ;;
	add-paired)   echo "bloomery: \`BF.ADD\`, LAYOUT PAIRED" ;;
	mexists)      echo "bloomery: \`BF.MEXISTS\` of 100 (commands/s)" ;;
	cf-add)       echo "bloomery: \`CF.ADD\`" ;;
	cf-exists)    echo "bloomery: \`CF.EXISTS\`" ;;
	cf-del)       echo "bloomery: \`CF.DEL\`" ;;
	add-counting) echo "bloomery: \`BF.ADD\`, LAYOUT COUNTING" ;;
	exists-counting) echo "bloomery: \`BF.EXISTS\`, LAYOUT COUNTING" ;;
	del-counting) echo "bloomery: \`BF.DEL\`, LAYOUT COUNTING" ;;
	esac
}

# measure NAME DEPTH REQUESTS: appends "requests/s p99-in-ms" to a file.
measure() {
	set -- "$1" "$2" "$3" $(command "$1")
	name=$1 depth=$2 requests=$3 port=$4
	shift 4
	case $name in mexists) requests=$((requests / 20)) ;; esac
	timeout 120 redis-benchmark --csv -r "$KEYS" -c "$CLIENTS" -p "$port" -P "$depth" -n "$requests" "$@" 2>/dev/null |
		awk -F '"' 'END { print $(NF - 13), $(NF - 3) }' >>"$dir/$name.$depth"
}

# ratio NAME DEPTH COLUMN BASE: prints the median ratio of a figure to BASE's in the
# same round.
ratio() {
	paste -d ' ' "$dir/$1.$2" "$dir/$4.$2" | awk -v c="$3" '{ print $c / $(c + 2) }' | median "%.2f"
}

# figure NAME DEPTH COLUMN FORMAT: prints the median of a figure.
figure() { awk -v c="$3" '{ print $c }' "$dir/$1.$2" | median "$4"; }

median() { sort -n | awk -v f="$1" '{ x[NR] = $1 } END { printf f, (x[int((NR + 1) / 2)] + x[int(NR / 2) + 1]) / 2 }'; }

say "building ..."
go build -buildvcs=false -o "$dir/bloomery" ./cmd/bloomery
start redis.log redis-server --port "$REDIS_PORT" --save '' --appendonly no --dir "$dir"
# shellcheck disable=SC2086 # several words
start bloomery.log "$dir/bloomery" serve --listen "127.0.0.1:$PORT" $FLAGS
ready "$REDIS_PORT" redis.log
ready "$PORT" bloomery.log
redis-cli -p "$PORT" BF.RESERVE redisbloom 0.01 "$KEYS" NONSCALING >/dev/null
redis-cli -p "$PORT" BF.RESERVE paired 0.01 "$KEYS" NONSCALING LAYOUT PAIRED >/dev/null
redis-cli -p "$PORT" BF.RESERVE counting 0.01 "$KEYS" LAYOUT COUNTING >/dev/null
redis-cli -p "$PORT" CF.RESERVE cuckoo "$KEYS" >/dev/null

names=${NAMES:-get set redis-ping ping exists add exists-paired add-paired mexists cf-add cf-exists cf-del add-counting exists-counting del-counting}
round=1
while [ "$round" -le "$RUNS" ]; do
	for name in $names; do
		say "round $round of $RUNS: $name"
		measure "$name" 64 "$N64"
		measure "$name" 1 "$N1"
	done
	# Keys that SET has written would not be missing for the next GET.
	redis-cli -p "$REDIS_PORT" FLUSHALL >/dev/null
	round=$((round + 1))
done

model=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo 2>/dev/null || true)
echo "$CLIENTS connections, $KEYS different keys, $N64 requests with 64 in flight a connection, $N1 with one; client and server on one machine: ${model:-unknown CPU}, $(getconf _NPROCESSORS_ONLN) cores; $(redis-server --version | awk '{ print "redis-server", substr($3, 3) }'); $(go version | awk '{ print $3, $4 }'); $(date -u +%Y-%m-%d). \`bloomery serve ${FLAGS:-}\`. Median of $RUNS rounds; x GET: the ratio to redis-server's GET of the same round."
echo
echo "| | 64 in flight | x GET | x SET | one in flight | x GET | p99 | x p99 of GET |"
echo "|---|---|---|---|---|---|---|---|"
for name in $names; do
	printf '| %s | %s/s | %s | %s | %s/s | %s | %s ms | %s |\n' "$(title "$name")" \
		"$(figure "$name" 64 1 '%.0f')" "$(ratio "$name" 64 1 get)" "$(ratio "$name" 64 1 set)" \
		"$(figure "$name" 1 1 '%.0f')" "$(ratio "$name" 1 1 get)" "$(figure "$name" 1 2 '%.2f')" "$(ratio "$name" 1 2 get)"
done
