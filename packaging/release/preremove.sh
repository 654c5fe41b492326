#!/bin/sh
# Runs before a removal or upgrade. dpkg says "remove", rpm says 0; both say something
# else at an upgrade. The data in /var/lib/bloomery stays.
set -e
if [ -d /run/systemd/system ]; then
	case "$1" in
	remove | 0) systemctl disable --now bloomery.service ;;
	esac
fi
