#!/usr/bin/env bash
# openssl s_client against `antiphon serve` on tls://: TLS versions, framings, and client
# certificates, which openssl creates.
#
# Usage: openssl.sh BINARY   starts and stops that binary
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: openssl.sh BINARY" >&2; exit 2; }
binary=$1
scratch=$(mktemp -d)
servers=()
held=0
broken=0

stop() {
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null || true
    rm -rf "$scratch"
}
trap stop EXIT

# check WHAT ACTUAL EXPECTED: one assertion. EXPECTED is a shell pattern.
check() {
    # shellcheck disable=SC2053
    if [[ $2 == $3 ]]; then
        held=$((held + 1))
        echo "ok    $1"
    else
        broken=$((broken + 1))
        echo "FAIL  $1: got '$(tail -c 400 <<<"$2")', want '$3'"
    fi
}

# start ENDPOINT FLAG...: serves there, and sets $address to the bound address.
start() {
    local log="$scratch/stderr-${#servers[@]}"
    : >"$log"
    "$binary" serve "$@" 2>>"$log" &
    servers+=($!)
    for _ in {1..100}; do
        if address=$(sed -n 's,^listening on tls[^:]*://,,p' "$log" | grep .); then return; fi
        kill -0 "${servers[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    echo "$binary named no tls:// endpoint on stderr:" >&2
    cat "$log" >&2
    exit 1
}

# ask TEXT FLAG...: sends TEXT on one connection, and prints the output of openssl. It waits for the
# response or a timeout, since s_client exits at the end of its input.
ask() {
    local text=$1 said="$scratch/said"
    shift
    : >"$said"
    {
        printf '%s' "$text"
        for _ in {1..100}; do
            grep -qE '"id":|:error:|verify error' "$said" && break
            sleep 0.05
        done
    } | timeout 20 openssl s_client -connect "$address" -servername localhost "$@" >"$said" 2>&1 || true
    tr -d '\0' <"$said"
}

call='{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
answer='{"jsonrpc":"2.0","result":19,"id":1}'
trust=(-CAfile "$scratch/cert.pem" -verify_return_error)

streams() {
    start tls://127.0.0.1:0 "--tls-self-signed=$scratch/cert.pem"
    local said
    said=$(ask "$call"$'\n' "${trust[@]}")
    check "the certificate is good" "$said" '*Verify return code: 0 (ok)*'
    check "a line is answered by a line" "$said" "*$answer"$'\n*'
    for version in 1_2 1_3; do
        said=$(ask "$call"$'\n' "${trust[@]}" "-tls$version")
        check "TLS ${version/_/.} is spoken" "$said" "*TLSv${version/_/.}*$answer*"
    done
    check "TLS 1.1 is not" "$(ask "$call"$'\n' "${trust[@]}" -tls1_1 -cipher ALL:@SECLEVEL=0)" '*alert*'
    check "Content-Length is answered by Content-Length" \
        "$(ask "$(printf 'Content-Length: %s\r\n\r\n%s' ${#call} "$call")" "${trust[@]}")" \
        "*Content-Length: ${#answer}"$'\r\n\r\n'"$answer*"
    check "another authority does not vouch for it" \
        "$(ask "$call"$'\n' -verify_return_error)" '*verify error*'
}

# A certificate authority, and a certificate signed by it.
make_certificates() {
    local subject=(-newkey rsa:2048 -nodes -days 2)
    openssl req -x509 "${subject[@]}" -subj /CN=authority -keyout "$scratch/ca.key" -out "$scratch/ca.pem"
    openssl req "${subject[@]}" -subj /CN=ada -keyout "$scratch/ada.key" -out "$scratch/ada.csr"
    openssl x509 -req -in "$scratch/ada.csr" -CA "$scratch/ca.pem" -CAkey "$scratch/ca.key" \
        -CAcreateserial -days 2 -extfile <(echo 'subjectAltName=DNS:ada.example') -out "$scratch/ada.pem"
    openssl req -x509 "${subject[@]}" -subj /CN=stranger -keyout "$scratch/stranger.key" -out "$scratch/stranger.pem"
}

clients() {
    make_certificates 2>/dev/null
    start tls://127.0.0.1:0 "--tls-self-signed=$scratch/cert.pem" --tls-client-ca "$scratch/ca.pem"
    check "a client with a certificate is served" \
        "$(ask "$call"$'\n' "${trust[@]}" -cert "$scratch/ada.pem" -key "$scratch/ada.key")" "*$answer*"
    check "a client without one is not" "$(ask "$call"$'\n' "${trust[@]}")" '*alert*certificate required*'
    check "nor is one that nobody vouches for" \
        "$(ask "$call"$'\n' "${trust[@]}" -cert "$scratch/stranger.pem" -key "$scratch/stranger.key")" '*SSL alert number 4[68]*'
    for flags in "--cert $scratch/ada.pem --key $scratch/ada.key" ''; do
        # shellcheck disable=SC2086
        said=$("$binary" call --cacert "$scratch/cert.pem" $flags "tls://$address" subtract 42 23 2>&1 || true)
        case $flags in
        '') check "antiphon without one is told to show one" "$said" '*--cert FILE*' ;;
        *) check "antiphon with openssl's certificate is served" "$said" 19 ;;
        esac
    done
}

streams
clients

[ "$broken" -eq 0 ] || { echo "$broken of $((held + broken)) assertions failed" >&2; exit 1; }
