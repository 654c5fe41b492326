//go:build !linux

package server

import "net"

// loops exist only on Linux.
type loops struct{}

func (s *Server) newSocket(*Client, net.Conn) (transport, bool) { return nil, false }

func (s *Server) stopLoops() {}
