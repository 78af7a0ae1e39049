# Part of scripts/kube: keys, certificates, tokens and the kubeconfig in $DIR.
# shellcheck shell=bash

# openssl talks even when all is well; its words count only when it fails.
quiet_openssl() {
	local words
	words=$(openssl "$@" 2>&1) || die "openssl $1 failed: $words"
}

NEW_KEY=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650)

new_ca() { # NAME
	quiet_openssl req -x509 "${NEW_KEY[@]}" -subj "/CN=$1" -keyout "$DIR/$1.key" -out "$DIR/$1.crt" \
		-addext keyUsage=critical,keyCertSign,cRLSign
}

new_cert() { # NAME SUBJECT EXTENSION...: signed by our CA
	local name=$1 subject=$2 extension extensions=(-addext "basicConstraints=critical,CA:FALSE")
	shift 2
	for extension in "$@"; do extensions+=(-addext "$extension"); done
	quiet_openssl req -x509 "${NEW_KEY[@]}" -CA "$DIR/ca.crt" -CAkey "$DIR/ca.key" \
		-subj "$subject" "${extensions[@]}" -keyout "$DIR/$name.key" -out "$DIR/$name.crt"
}

inline() { base64 -w0 <"$DIR/$1"; }
new_token() { openssl rand -hex 16; }

write_credentials() {
	local admin viewer nobody manager
	say "writing keys, certificates and the kubeconfig"
	new_ca ca
	new_ca wrong-ca
	new_cert server /CN=kube-apiserver subjectAltName=IP:127.0.0.1,DNS:localhost extendedKeyUsage=serverAuth
	new_cert client /O=system:masters/CN=cert extendedKeyUsage=clientAuth
	quiet_openssl genpkey -algorithm RSA -out "$DIR/service-account.key"
	admin=$(new_token) viewer=$(new_token) nobody=$(new_token) manager=$(new_token)
	cat >"$DIR/tokens.csv" <<-EOF
		$admin,admin,admin,system:masters
		$viewer,viewer,viewer
		$nobody,nobody,nobody
		$manager,system:kube-controller-manager,manager,system:masters
	EOF
	write_kubeconfig "$admin" "$viewer" "$nobody" >"$DIR/kubeconfig"
	write_manager_kubeconfig "$manager" >"$DIR/controller-manager.kubeconfig"
}

write_kubeconfig() { # ADMIN VIEWER NOBODY: their tokens
	local server=https://127.0.0.1:$API_PORT
	cat <<EOF
apiVersion: v1
kind: Config
current-context: admin
clusters:
- {name: kube, cluster: {server: "$server", certificate-authority: "$DIR/ca.crt"}}
- {name: kube-data, cluster: {server: "$server", certificate-authority-data: $(inline ca.crt)}}
- {name: wrong-ca, cluster: {server: "$server", certificate-authority: "$DIR/wrong-ca.crt"}}
users:
- {name: admin, user: {token: "$1"}}
- {name: viewer, user: {token: "$2"}}
- {name: nobody, user: {token: "$3"}}
- {name: cert, user: {client-certificate: "$DIR/client.crt", client-key: "$DIR/client.key"}}
- {name: cert-data, user: {client-certificate-data: $(inline client.crt), client-key-data: $(inline client.key)}}
contexts:
- {name: admin, context: {cluster: kube, user: admin}}
- {name: cert, context: {cluster: kube, user: cert}}
- {name: cert-data, context: {cluster: kube-data, user: cert-data}}
- {name: viewer, context: {cluster: kube, user: viewer}}
- {name: nobody, context: {cluster: kube, user: nobody}}
- {name: wrong-ca, context: {cluster: wrong-ca, user: admin}}
EOF
}

write_manager_kubeconfig() { # TOKEN
	cat <<EOF
apiVersion: v1
kind: Config
current-context: manager
clusters:
- {name: kube, cluster: {server: "https://127.0.0.1:$API_PORT", certificate-authority: "$DIR/ca.crt"}}
users:
- {name: manager, user: {token: "$1"}}
contexts:
- {name: manager, context: {cluster: kube, user: manager}}
EOF
}
