#!/bin/sh
# Runs after an installation or upgrade. It does not enable or start the service: the
# administrator does. A service that runs already restarts with the new program. It
# may take minutes to write its last snapshot, so this does not wait for it.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl --no-block try-restart bloomery.service
fi
