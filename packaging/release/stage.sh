#!/bin/sh
# Writes bin/package: what archives and packages hold next to the program.
# .goreleaser.yaml runs this at the root of the repository. The same commit gives
# the same bytes.
#
# usage: stage.sh VERSION SECONDS DATE   the commit's time: since 1970, and in RFC 3339
set -eu
version=$1 date=$3
export SOURCE_DATE_EPOCH="$2" TZ=UTC LC_ALL=C GOFLAGS= CGO_ENABLED=0
out=bin/package
rm -rf $out
mkdir -p $out/man $out/completions

# The manual pages and completions are what the program prints.
go build -trimpath -buildvcs=true -o $out/bloomery ./cmd/bloomery
$out/bloomery man -o $out/man
$out/bloomery completion bash > $out/completions/bloomery.bash
$out/bloomery completion zsh > $out/completions/_bloomery
$out/bloomery completion fish > $out/completions/bloomery.fish
$out/bloomery completion powershell > $out/completions/bloomery.ps1
rm $out/bloomery
gzip -9nk $out/man/*.1

# The licenses of all that is linked in ask that their texts come along.
for os in linux darwin windows freebsd; do
	GOOS=$os go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/bloomery
done | sort -u | while read -r module mversion dir; do
	for file in "$dir"/LICEN[CS]E* "$dir"/COPYING* "$dir"/NOTICE*; do
		[ -f "$file" ] || continue
		printf '\n==== %s %s: %s ====\n\n' "$module" "$mversion" "${file##*/}"
		cat "$file"
	done
done > $out/third-party-licenses.txt
{ printf '\n==== The Go standard library: LICENSE ====\n\n'; cat "$(go env GOROOT)/LICENSE"; } >> $out/third-party-licenses.txt
gzip -9nk $out/third-party-licenses.txt

cat > $out/changelog.yaml <<END
- semver: $version
  date: $date
  packager: The Bloomery authors <bloomery@example.org>
  deb:
    urgency: medium
    distributions: [unstable]
  changes:
    - commit: "$(git rev-parse HEAD)"
      note: "Bloomery $version. CHANGELOG.md in the source says what is new."
END

cat > $out/copyright <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: bloomery
Source: https://github.com/bloomery/bloom

Files: *
Copyright: 2026 The Bloomery authors
License: Apache-2.0
 On Debian systems, the full text of the license is in
 /usr/share/common-licenses/Apache-2.0.
Comment:
 The program is linked statically. The licenses of the modules and of the Go
 standard library in it are in third-party-licenses.txt.gz in this directory.
END

find $out -exec touch -d "$date" {} +
