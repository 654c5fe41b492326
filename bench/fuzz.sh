#!/bin/sh
# Fuzzes every reader of filter files for FUZZTIME and prints a Markdown table of the
# runs. Stops at the first failure.
#
#	sh bench/fuzz.sh                    # ten minutes in all
#	FUZZTIME=5s sh bench/fuzz.sh
set -eu
cd "$(dirname "$0")/.."
targets=$(grep '^func Fuzz' ./*_test.go ./classic/*_test.go ./interop/*_test.go | sed 's|\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|')
count=$(echo "$targets" | wc -l)
FUZZTIME=${FUZZTIME:-$((600 / count + 1))s}
log=$(mktemp "${TMPDIR:-/tmp}/bloomery-fuzz.XXXXXX")
trap 'rm -f "$log"' EXIT

echo "Each target for $FUZZTIME; $(go version | awk '{ print $3, $4 }'), $(getconf _NPROCESSORS_ONLN) cores, $(date -u +%Y-%m-%d)."
echo
echo "| target | inputs tried | new ways through the code | failures |"
echo "|---|---|---|---|"
echo "$targets" | while read -r dir target; do
	echo "$dir $target" >&2
	if ! go test -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 1s "$dir" </dev/null >"$log" 2>&1; then
		cat "$log" >&2
		exit 1
	fi
	awk -v t="$target" '/execs:/ { for (i = 1; i < NF; i++) { if ($i == "execs:") e = $(i + 1); if ($i == "interesting:") n = $(i + 1) } }
		END { printf "| `%s` | %d | %d | 0 |\n", t, e, n }' "$log"
done
