#!/bin/sh
# Builds what users install from the commit that is checked out, into dist/. Changes
# that are not committed are not in it. A commit with a tag v1.2.3 gets that version,
# any other one a version of a snapshot. It uploads nothing.
#
# The build happens in a clone of its own, because the go command, GoReleaser and
# cyclonedx-gomod read the version from git, and two of them cannot in a worktree.
set -eu
export LC_ALL=C
GO=${GO:-go}
root=$(git rev-parse --show-toplevel)
cd "$root"

echo "== compile GoReleaser and cyclonedx-gomod: the first time, this takes five to ten minutes"
mkdir -p bin
(cd packaging/release && $GO build -trimpath -buildvcs=false -o ../../bin/ \
	github.com/goreleaser/goreleaser/v2 \
	github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod \
	./bloomery-image)

[ -z "$(git status --porcelain)" ] || echo "   (what is not committed is not built)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
git init -q "$work/bloomery"
cd "$work/bloomery"
git fetch -q --tags "$root" HEAD
git checkout -q --detach FETCH_HEAD
git remote add origin https://github.com/bloomery/bloom # GoReleaser ignores git without one

snapshot=--snapshot
if git describe --exact-match --match 'v[0-9]*' >/dev/null 2>&1; then snapshot=; fi
echo "== modules of the program, which need the network once"
$GO mod download

# From here on nothing needs the network.
echo "== goreleaser release $snapshot"
PATH="$root/bin:$PATH" GOPROXY=off GOTOOLCHAIN=local GOCACHE=$($GO env GOCACHE) GOMODCACHE=$($GO env GOMODCACHE) \
	goreleaser release --clean $snapshot --skip=publish,announce --timeout 60m

rm -rf "$root/dist"
mkdir "$root/dist"
cp dist/checksums.txt "$root/dist"
while read -r _ file; do cp "dist/$file" "$root/dist"; done < dist/checksums.txt
cd "$root/dist"
sha256sum --quiet -c checksums.txt
echo "== dist/"
ls -l
