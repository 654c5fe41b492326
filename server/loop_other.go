//go:build !linux

package server

import "net"

// loops are of Linux.
type loops struct{}

func (s *Server) newSocket(*Client, net.Conn) (transport, bool) { return nil, false }

func (s *Server) stopLoops() {}
