package main

import (
	"log/slog"
	"net"
	"os"
)

// notifySystemd tells systemd, if it has started us as a service of Type=notify,
// that a state is reached: READY=1, or STOPPING=1. See sd_notify(3).
func notifySystemd(state string) error {
	path := os.Getenv("NOTIFY_SOCKET") // one that begins with @ is an abstract one, to package net too
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}

// tellSystemd is notifySystemd for a server, which goes on without.
func tellSystemd(state string, log *slog.Logger) {
	if err := notifySystemd(state); err != nil {
		log.Warn("cannot tell systemd the state of the service", "state", state, "error", err)
	}
}
