#!/bin/sh
# Runs node-redis against `bloomery serve`, on a free loopback port:
#
#	sh bench/interop/noderedis.sh DIR
#
# DIR is where install.sh put the JavaScript packages.
set -eu
dir=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d "${TMPDIR:-/tmp}/bloomery-noderedis.XXXXXX")
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null; fi; wait; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
go build -o "$work/bloomery" ./cmd/bloomery
"$work/bloomery" serve --listen 127.0.0.1:0 --http off 2>"$work/log" &
pid=$!
address=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	address=$(sed -n 's/.*msg=serving address=\([0-9.:]*\).*/\1/p' "$work/log")
	if [ -n "$address" ]; then break; fi
	sleep 0.2
done
if [ -z "$address" ]; then
	cat "$work/log" >&2
	exit 1
fi
script=$PWD/bench/interop/noderedis.mjs
(cd "$dir" && node "$script" "redis://$address")
