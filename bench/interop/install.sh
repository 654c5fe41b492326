#!/bin/sh
# Installs the programs that `make interop` tests the library against, if missing:
#
#	sh bench/interop/install.sh DIR
#
# Java, Guava, Node.js, Python and Redis come from apt-get, the JavaScript packages
# from npm, into DIR. The Go modules come with the build.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
guava=${GUAVA:-/usr/share/java/guava.jar}

say() { echo "$@" >&2; }

missing=
need() { # COMMAND PACKAGE...
	command -v "$1" >/dev/null && return
	shift
	missing="$missing $*"
}
need javac default-jdk-headless
need node nodejs
need npm npm
need python3 python3
need redis-server redis-server
[ -e "$guava" ] || missing="$missing libguava-java"

if [ -n "$missing" ]; then
	say "== install$missing"
	if ! command -v apt-get >/dev/null; then
		say "make interop: no apt-get: install$missing, and set GUAVA to Guava's jar if it is not $guava"
		exit 1
	elif [ "$(id -u)" = 0 ]; then
		sudo=
	elif command -v sudo >/dev/null; then
		sudo=sudo
	else
		say "make interop: neither root nor sudo: install$missing, then try again"
		exit 1
	fi
	$sudo apt-get update >&2
	# The package of Redis may start a service. The comparison does not use it, but
	# starts its own server on a free port.
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >&2
fi

if ! cmp -s "$here/programs/package-lock.json" "$dir/package-lock.json" || [ ! -d "$dir/node_modules" ]; then
	say "== npm ci"
	cp "$here/programs/package.json" "$here/programs/package-lock.json" "$dir"
	(cd "$dir" && npm ci --prefer-offline --no-audit --no-fund --ignore-scripts >&2) || { rm -f "$dir/package-lock.json"; exit 1; }
fi
