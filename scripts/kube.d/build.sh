# Part of scripts/kube: the programs, built from the Go module proxy at the
# versions that go.mod and go.sum in etcd/ and server/ name.
# shellcheck shell=bash

CACHE=${XDG_CACHE_HOME:-${HOME:?is not set, and neither is XDG_CACHE_HOME}/.cache}/moonwatch/kube

find_programs() {
	BIN=$CACHE/$(cat "$PARTS"/{etcd,server}/go.{mod,sum} | sha256sum | cut -c1-16)
}

# One build or start at a time: two would build the same files, or choose the
# same free ports. The lock ends with this process.
lock() {
	mkdir -p "$CACHE"
	exec {LOCK}<"$CACHE"
	flock -n "$LOCK" && return
	say "waiting for another scripts/kube to finish its build or start"
	flock "$LOCK"
}

build() {
	find_programs
	local started=$SECONDS programs=(etcd etcdctl kube-apiserver kube-controller-manager kubectl) missing=() name
	for name in "${programs[@]}"; do [[ -x $BIN/$name ]] || missing+=("$name"); done
	if ((${#missing[@]} == 0)); then
		say "programs are built: $BIN"
		return
	fi
	check_go
	mkdir -p "$BIN"
	say "building ${missing[*]} into $BIN; this takes some minutes, once"
	trap 'kill "$JOB" 2>/dev/null; rm -f -- "$BIN"/*.new "$BIN"/*.log; exit 1' INT TERM HUP
	for name in "${missing[@]}"; do
		case $name in
		etcd) build_one etcd etcd go.etcd.io/etcd/server/v3 ;;
		etcdctl) build_one etcd etcdctl go.etcd.io/etcd/etcdctl/v3 ;;
		*) build_one server "$name" "k8s.io/kubernetes/cmd/$name" ;;
		esac
	done
	trap - INT TERM HUP
	say "built in $((SECONDS - started)) s"
}

# Asks inside the module: a Go that is allowed to fetch a newer Go does so there.
check_go() {
	local need have
	command -v go >/dev/null || die "go is missing, and scripts/kube builds the API server with it: install Go ($(go_needed) or newer) and have it in PATH"
	need=$(go_needed)
	have=$(cd "$PARTS/server" && go env GOVERSION 2>/dev/null) || have=$(go version | cut -d' ' -f3)
	printf '%s\n' "$need" "${have#go}" | sort -V -C ||
		die "$(command -v go) is Go ${have#go}, and Kubernetes needs $need or newer: install a newer Go and have it first in PATH"
}
go_needed() { sed -n 's/^go //p' "$PARTS/server/go.mod"; }

# build_one MODULE NAME PACKAGE
build_one() {
	local module=$1 name=$2 package=$3
	# No C compiler is needed without cgo.
	export CGO_ENABLED=0 GOWORK=off
	[[ ${FETCHED-} == "$module" ]] || attempt "fetching the sources of $name" "$name" "$module" go mod download
	FETCHED=$module
	# A third of the compiler's time would go into collecting its garbage and making what -w throws away.
	# Without -X the server would call itself v0.0.0.
	attempt "building $name" "$name" "$module" nice -n 10 env GOGC=400 GOMEMLIMIT=1GiB \
		go build -p 2 -mod=readonly -trimpath -buildvcs=false \
		-gcflags all=-dwarf=false -ldflags "-s -w $(version_flags)" -o "$BIN/$name.new" "$package"
	mv "$BIN/$name.new" "$BIN/$name"
	rm -f -- "$BIN/$name.log"
}

version_flags() {
	local version major minor package
	version=$(sed -n 's/^.*k8s.io\/kubernetes \(v[^ ]*\).*/\1/p' "$PARTS/server/go.mod")
	IFS=. read -r major minor _ <<<"${version#v}"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		printf -- '-X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s ' \
			"$package" "$version" "$package" "$major" "$package" "$minor"
	done
}

# attempt TITLE NAME MODULE COMMAND...: runs it inside the module, says every ten
# seconds that it still does, and shows its output only when it fails.
attempt() {
	local title=$1 log=$BIN/$2.log module=$3 started=$SECONDS shown=0
	shift 3
	say "$title"
	(cd "$PARTS/$module" && exec "$@") >"$log" 2>&1 &
	JOB=$!
	while kill -0 "$JOB" 2>/dev/null; do
		sleep 0.5
		if ((SECONDS - started >= shown + 10)); then
			shown=$((SECONDS - started))
			say "$title: $shown s"
		fi
	done
	if ! wait "$JOB"; then
		cat "$log" >&2
		rm -f -- "$log"
		die "$title failed, its output is above"
	fi
}
