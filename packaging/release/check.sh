#!/bin/sh
# Proves what release.sh builds: that the same commit gives the same bytes, and that a
# machine with nothing on it gets a working program, manual, completion and service.
# Needs root on Debian, for a chroot and a network namespace of its own; the mirror of
# Debian is in MIRROR. Its servers listen on the loopback of that namespace only.
set -eu
export LC_ALL=C
GO=${GO:-go}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
root=$(git rev-parse --show-toplevel)
here=$root/packaging/release
cache=${XDG_CACHE_HOME:-$HOME/.cache}/bloomery-release
cd "$root"

fail() { echo "make release-check: $*" >&2; exit 1; }
step() { echo "== $*"; }

[ "$(id -u)" = 0 ] || fail "wants root, for chroot: run it as root"
missing=
need() { command -v "$1" >/dev/null || missing="$missing $2"; }
need lintian lintian
need debootstrap debootstrap
need rpm rpm
need qemu-aarch64-static qemu-user-static
need ip iproute2
need jq jq
need unzip unzip
need cpio cpio
if [ -n "$missing" ]; then
	step "apt-get installs what the check needs:$missing"
	command -v apt-get >/dev/null || fail "no apt-get: install$missing, then try again"
	apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
fi

work=$(mktemp -d)
server=
finish() {
	if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
	umount "$work/root/proc" 2>/dev/null || true
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

step "build it twice, in two directories, time zones and with two umasks"
sh "$here/release.sh"
cp -r dist "$work/first"
(umask 027; TZ=Asia/Kathmandu sh "$here/release.sh" >"$work/second.log" 2>&1) || { tail -40 "$work/second.log"; fail "the second build failed"; }
for file in "$work"/first/*; do
	cmp "$file" "dist/${file##*/}" || fail "${file##*/} is not the same in both builds"
done
echo "   the same bytes: $(ls dist | wc -l) files"

version=$(ls dist/*_linux_amd64.tar.gz | sed 's|.*/bloomery_\(.*\)_linux_amd64.tar.gz|\1|')
commit=$(git rev-parse HEAD)

step "every target has an archive, an SBOM and a program built the same way"
for target in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64 windows_amd64 windows_arm64 freebsd_amd64 freebsd_arm64; do
	mkdir "$work/$target"
	case $target in
	windows*)
		exe=.exe
		unzip -q "dist/bloomery_${version}_$target.zip" -d "$work/$target" ;;
	*)
		exe=
		tar -xzf "dist/bloomery_${version}_$target.tar.gz" -C "$work/$target" ;;
	esac
	dir=$work/$target/bloomery_${version}_$target
	$GO version -m "$dir/bloomery$exe" > "$work/$target/built"
	for setting in "GOOS=${target%_*}" "GOARCH=${target#*_}" CGO_ENABLED=0 -trimpath=true "vcs.revision=$commit" vcs.modified=false; do
		grep -q "build	$setting\$" "$work/$target/built" || fail "$target was not built with $setting"
	done
	for file in LICENSE third-party-licenses.txt man/bloomery.1 completions/_bloomery systemd/bloomery.service; do
		[ -s "$dir/$file" ] || fail "the archive of $target has no $file"
	done
	sbom=dist/bloomery_${version}_$target.cdx.json
	linked=$(grep -c '^	dep	' "$work/$target/built")
	listed=$(jq '[.components[] | select(.name != "std")] | length' "$sbom")
	[ "$linked" = "$listed" ] || fail "$sbom lists $listed modules, and the program has $linked"
	# cyclonedx-gomod does not recognize the licenses of these two, both BSD.
	unknown=$(jq -r '[.components[] | select(.licenses == null and .evidence.licenses == null).name] | join(" ")' "$sbom")
	[ "$unknown" = "github.com/twmb/murmur3 std" ] || fail "$sbom names no license for: $unknown"
	echo "   $target: $(wc -c < "$dir/bloomery$exe") bytes, $linked modules"
done
[ "$(seq 3 | "$work/linux_amd64/bloomery_${version}_linux_amd64/bloomery" dedupe | wc -l)" = 3 ] || fail "the program for amd64 does not run"
[ "$(seq 3 | qemu-aarch64-static "$work/linux_arm64/bloomery_${version}_linux_arm64/bloomery" dedupe | wc -l)" = 3 ] || fail "the program for arm64 does not run"

step "the same program from an empty build cache"
git clone -q "$root" "$work/clone"
git -C "$work/clone" checkout -q --detach "$commit"
(cd "$work/clone" && GOCACHE="$work/gocache" CGO_ENABLED=0 GOFLAGS=-buildvcs=true GOAMD64=v1 GOOS=linux GOARCH=amd64 \
	$GO build -trimpath -ldflags='-s -w' -o "$work/again" ./cmd/bloomery)
cmp "$work/again" "$work/linux_amd64/bloomery_${version}_linux_amd64/bloomery" || fail "the cache changes the program"
rm -rf "$work/gocache"

step "lintian"
lintian --allow-root --fail-on error,warning dist/*.deb

step "the .rpm holds what the .deb holds"
names() { sed 's|^\./|/|; s|/zsh/vendor-completions/|/zsh/site-functions/|' | grep -E '^/usr/(bin|lib|share/(man|bash-completion|fish|zsh))/.*[^/]$' | sort; }
for pair in amd64:x86_64 arm64:aarch64; do
	deb=$(ls dist/*_"${pair%:*}".deb) rpm=$(ls dist/*"${pair%:*}"*.rpm)
	[ "$(rpm -qp --nosignature --queryformat '%{ARCH}' "$rpm")" = "${pair#*:}" ] || fail "$rpm is not for ${pair#*:}"
	rpm --checksig --nosignature "$rpm"
	mkdir -p "$work/rpm"
	(cd "$work/rpm" && rpm2cpio "$root/$rpm" | cpio -idm --quiet --no-absolute-filenames)
	dpkg-deb -x "$deb" "$work/deb-${pair%:*}"
	(cd "$work/rpm" && find . -type f | names) > "$work/rpm-names"
	(cd "$work/deb-${pair%:*}" && find . -type f | names) > "$work/deb-names"
	diff "$work/deb-names" "$work/rpm-names" || fail "$rpm holds other files than $deb"
	cmp "$work/rpm/usr/bin/bloomery" "$work/deb-${pair%:*}/usr/bin/bloomery"
	rm -rf "$work/rpm"
done

. /etc/os-release
base=$cache/$VERSION_CODENAME.tar
if [ ! -f "$base" ]; then
	step "debootstrap: a $VERSION_CODENAME with man-db and bash-completion, kept in $base"
	mkdir -p "$cache"
	debootstrap --variant=minbase --include=man-db,bash-completion "$VERSION_CODENAME" "$work/base" "$MIRROR" >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log"; fail "debootstrap failed"; }
	tar -cf "$base.part" -C "$work/base" --exclude='./dev/*' --exclude='./var/cache/apt/archives/*.deb' . && mv "$base.part" "$base"
	rm -rf "$work/base"
fi

step "install the .deb into a clean $VERSION_CODENAME"
mkdir "$work/root"
tar -xf "$base" -C "$work/root"
for device in null:3 zero:5 random:8 urandom:9; do mknod -m 666 "$work/root/dev/${device%:*}" c 1 "${device#*:}"; done
ln -s /proc/self/fd "$work/root/dev/fd"
mount -t proc proc "$work/root/proc"
cp dist/*_amd64.deb "$work/root/tmp/bloomery.deb"
inside() { chroot "$work/root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
inside dpkg -i /tmp/bloomery.deb
inside bloomery version

step "man bloomery, and a page for each command"
inside man bloomery | cat > "$work/page"
grep -q '^NAME' "$work/page" || fail "man bloomery shows no page"
for command in dedupe serve check; do
	inside man "bloomery-$command" | grep -q SYNOPSIS || fail "there is no page bloomery-$command"
done
# man reports what it cannot typeset.
inside sh -c 'for page in /usr/share/man/man1/bloomery*.gz; do man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null; done' > "$work/warnings"
[ ! -s "$work/warnings" ] || { cat "$work/warnings"; fail "groff complains about a manual page"; }

step "completion in bash"
completed=$(inside bash -c '
	. /usr/share/bash-completion/bash_completion
	_completion_loader bloomery || true
	COMP_WORDS=(bloomery ded) COMP_CWORD=1 COMP_LINE="bloomery ded" COMP_POINT=12
	__start_bloomery 2>/dev/null # compopt complains outside of Tab
	echo "${COMPREPLY[0]}"')
case $completed in dedupe*) ;; *) fail "bash completes 'bloomery ded' to '$completed'" ;; esac

# says COMMAND REPLY: what the server says to a command of Redis.
cat > "$work/root/says" <<'END'
says() {
	exec 3<>/dev/tcp/127.0.0.1/6380
	printf '%s\r\n' "$1" >&3
	read -r -t 10 reply <&3
	exec 3<&-
	[ "$reply" = "$2"$'\r' ] || { echo "$1: '$reply' instead of '$2'" >&2; exit 1; }
}
END

step "the service's command, as an unprivileged user"
unit=$work/root/usr/lib/systemd/system/bloomery.service
exec=$(sed -n 's/^ExecStart=//p' "$unit" | sed 's|%S|/var/lib|g')
echo "   $exec"
mkdir -m 0700 "$work/root/var/lib/bloomery"
chown 65534:65534 "$work/root/var/lib/bloomery"
cat > "$work/root/service" <<END
set -eu
. /says
# started runs the service and waits until its health check answers.
started() {
	$exec & server=\$!
	for i in \$(seq 100); do bloomery probe >/dev/null 2>&1 && return; sleep 0.1; done
	echo "the service does not start" >&2; exit 1
}
started
says PING +PONG
says 'BF.ADD seen alpha' :1
kill \$server
wait \$server
started
says 'BF.EXISTS seen alpha' :1
says 'BF.EXISTS seen beta' :0
kill \$server
wait \$server
END
# A network namespace has a loopback of its own, on which every port is free.
unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
	chroot --userspec=65534:65534 "$work/root" /usr/bin/env -i PATH=/usr/bin:/bin timeout 120 bash /service || fail "the service does not work"

step "remove the .deb"
inside dpkg --purge bloomery
[ ! -e "$work/root/usr/bin/bloomery" ] || fail "dpkg leaves the program"
[ -d "$work/root/var/lib/bloomery" ] || fail "dpkg removes the data"

step "the container image's command"
for arch in amd64 arm64; do
	image=dist/bloomery_${version}_linux_$arch.image.tar
	mkdir "$work/image-$arch"
	tar -xf "$image" -C "$work/image-$arch"
	layer=$(jq -r '.[0].Layers[0]' "$work/image-$arch/manifest.json")
	config=$work/image-$arch/$(jq -r '.[0].Config' "$work/image-$arch/manifest.json")
	[ "$(zcat "$work/image-$arch/$layer" | sha256sum | cut -d' ' -f1)" = "$(jq -r '.rootfs.diff_ids[0]' "$config" | cut -d: -f2)" ] || fail "$image: the layer's checksum is wrong"
	[ "$(jq -r .architecture "$config")" = $arch ] || fail "$image is not for $arch"
	mkdir "$work/layer-$arch"
	tar -xzf "$work/image-$arch/$layer" -C "$work/layer-$arch"
	cmp "$work/layer-$arch/bloomery" "$work/deb-$arch/usr/bin/bloomery"
done
config=$(ls "$work"/image-amd64/sha256:*)
mkdir -p "$work/layer-amd64/run/secrets"
echo correct-horse > "$work/layer-amd64/run/secrets/password"
unshare --net sh -c 'ip link set lo up && exec "$@"' sh chroot --userspec="$(jq -r .config.User "$config")" "$work/layer-amd64" $(jq -r '.config.Entrypoint + .config.Cmd | join(" ")' "$config") >"$work/image.log" 2>&1 & server=$!
ready=
for i in $(seq 100); do
	if nsenter --net="/proc/$server/ns/net" chroot "$work/layer-amd64" $(jq -r '.config.Healthcheck.Test[1:] | join(" ")' "$config") >/dev/null 2>&1; then ready=yes; break; fi
	sleep 0.1
done
[ -n "$ready" ] || { cat "$work/image.log"; fail "the image's health check fails"; }
kill "$server"
wait "$server" || fail "the image's command ends with an error"
server=

echo "release-check: all of it works: $version"
