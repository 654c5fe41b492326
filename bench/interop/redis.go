package main

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"time"
)

// startRedis starts a Redis without persistence in directory dir, on a free loopback
// port.
func startRedis(dir string) (port string, stop func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port = strconv.Itoa(free.Addr().(*net.TCPAddr).Port)
	free.Close()
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		server.Process.Kill()
		server.Wait()
	}
	for range 100 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return port, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("redis-server is not listening on port %s", port)
}
