//go:build tools

// Package tools names the programs that scripts/kube builds, so that
// `go mod tidy` keeps what they need in go.mod and go.sum. It is never compiled.
//
// etcd has a module of its own because kube-apiserver pins another version of
// etcd's client libraries.
package tools

import (
	_ "go.etcd.io/etcd/etcdctl/v3"
	_ "go.etcd.io/etcd/server/v3"
)
