#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# certificates.sh: makes an authority and a serving certificate for the metrics API, puts them into the Secret
# outrigger/outrigger-certs and the authority into the APIService. Run it after `kubectl apply -k deploy`, and
# again within DAYS (default 365): the operator takes the new certificate without a restart. KUBECTL names another
# kubectl. The authority's key is thrown away: each run makes a new one.
set -euo pipefail
kubectl=${KUBECTL:-kubectl}
days=${DAYS:-365}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# openssl writes its progress to stderr: shown only when it failed.
quietly() {
  local said
  said=$("$@" 2>&1) && return
  printf '%s\n' "$said" >&2
  return 1
}
new_key() { quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

names=DNS:outrigger-metrics.outrigger.svc,DNS:outrigger-metrics.outrigger.svc.cluster.local

new_key "$work/ca.key"
openssl req -x509 -new -key "$work/ca.key" -subj "/CN=outrigger-ca" -days "$days" -out "$work/ca.crt" \
  -addext keyUsage=critical,keyCertSign,cRLSign
new_key "$work/tls.key"
openssl req -new -key "$work/tls.key" -subj "/CN=outrigger-metrics.outrigger.svc" -out "$work/tls.csr"
printf '%s\n' "subjectAltName=$names" extendedKeyUsage=serverAuth keyUsage=critical,digitalSignature >"$work/extensions"
quietly openssl x509 -req -in "$work/tls.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -days "$days" \
  -extfile "$work/extensions" -out "$work/tls.crt"

# Applied, not created: the second run replaces the first one's.
$kubectl create secret generic outrigger-certs --namespace outrigger --dry-run=client --output yaml \
  --from-file="$work/tls.crt" --from-file="$work/tls.key" --from-file="$work/ca.crt" |
  $kubectl apply --server-side --force-conflicts --field-manager=outrigger-certificates --filename -
$kubectl patch apiservice v1beta1.external.metrics.k8s.io --type=merge --field-manager=outrigger-certificates \
  --patch "{\"spec\": {\"caBundle\": \"$(base64 -w0 "$work/ca.crt")\"}}"
