#!/usr/bin/env bash
# curl against `antiphon serve` on HTTP: statuses, headers, HTTP versions, and rejected requests.
#
# Usage: curl.sh URL          a running server, started with --max-frame-bytes 1048576
#        curl.sh URL BINARY   starts and stops that binary on URL (port 0 picks a free port)
#
# On https:// the server creates a certificate, and curl trusts only that one: this needs BINARY.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: curl.sh URL [BINARY]" >&2; exit 2; }
url=$1
limit=1048576
scratch=$(mktemp -d)
server=
held=0
broken=0
# The curl flags for HTTP/2, and the flags of every request.
two=--http2-prior-knowledge
always=()
serving=()

stop() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$scratch"
}
trap stop EXIT

# Over TLS the handshake selects HTTP/2; requests for HTTP/1.1 need a flag.
secure() {
    two=--http2
    always=(--cacert "$scratch/cert.pem" --http1.1)
    serving=("--tls-self-signed=$scratch/cert.pem")
}

# start BINARY: serves on $url, and sets $url to the bound address.
start() {
    : >"$scratch/stderr"
    "$1" serve "$url" --max-frame-bytes "$limit" "${serving[@]}" 2>>"$scratch/stderr" &
    server=$!
    for _ in {1..100}; do
        if bound=$(grep -om1 'https\?://[^ ,]*' "$scratch/stderr"); then url=$bound; return; fi
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "$1 named no http:// or https:// endpoint on stderr:" >&2
    cat "$scratch/stderr" >&2
    exit 1
}

# check WHAT ACTUAL EXPECTED: one assertion. EXPECTED is a shell pattern.
check() {
    # shellcheck disable=SC2053
    if [[ $2 == $3 ]]; then
        held=$((held + 1))
        echo "ok    $1"
    else
        broken=$((broken + 1))
        echo "FAIL  $1: got '${2:0:200}', want '$3'"
    fi
}

# ask ARG...: sends one request. Sets $status, $type, $version, $headers and $body.
ask() {
    : >"$scratch/body"
    : >"$scratch/headers"
    local facts
    if facts=$(curl -sS "${always[@]}" --max-time 20 -o "$scratch/body" -D "$scratch/headers" \
        -w '%{http_code} %{http_version} %{content_type}' "$@" "$url" 2>"$scratch/error"); then
        read -r status version type <<<"$facts"
    else
        status="no answer (curl exits with $?) $(cat "$scratch/error")" version='' type=''
    fi
    headers=$(tr -d '\r' <"$scratch/headers" | tr '[:upper:]' '[:lower:]')
    body=$(tr -d ' \n' <"$scratch/body")
}

# post BODY ARG...: sends a usual JSON-RPC request.
post() {
    ask -H 'Content-Type: application/json' --data-binary "$@"
}

# echo_of BYTES: prints the path of a file with a call whose params contain a string of that length.
echo_of() {
    {
        printf '{"jsonrpc":"2.0","method":"echo","id":1,"params":["'
        head -c "$1" /dev/zero | tr '\0' x
        printf '"]}'
    } >"$scratch/echo-$1"
    echo "@$scratch/echo-$1"
}

call='{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
notification='{"jsonrpc":"2.0","method":"update","params":[1,2,3]}'

answers() {
    post "$call"
    check "a call has status 200" "$status" 200
    check "a call is answered in application/json" "$type" "application/json*"
    check "a call is answered" "$body" '*"result":19*'
    post "[$call,$notification]"
    check "a batch is answered by an Array" "$status $body" '200 \[{*"result":19*}\]'
    post '{"jsonrpc":"2.0","method":"no_such_method","id":1}'
    check "an unknown method has status 200 and -32601" "$status $body" '200 *-32601*'
    post ''
    check "an empty body has status 200 and -32700" "$status $body" '200 *-32700*'
    post "$notification"
    check "a notification has status 204 and no body" "$status:$body" '204:'
    post "[$notification,$notification]"
    check "a batch of notifications has status 204 and no body" "$status:$body" '204:'
}

verbs() {
    for verb in GET PUT DELETE; do
        ask -X "$verb"
        check "$verb has status 405" "$status" 405
        check "$verb is told what is allowed" "$headers" $'*\nallow: *post*'
    done
    ask --head
    check "HEAD has status 405" "$status" 405
}

content_types() {
    for kind in 'application/json; charset=utf-8' application/json-rpc application/jsonrequest APPLICATION/JSON; do
        ask -H "Content-Type: $kind" --data-binary "$call"
        check "$kind is served" "$status $body" '200 *"result":19*'
    done
    for kind in text/plain application/x-www-form-urlencoded application/jsonp; do
        ask -H "Content-Type: $kind" --data-binary "$call"
        check "$kind has status 415" "$status" 415
    done
    ask -F "call=$call"
    check "a multipart form has status 415" "$status" 415
    ask -H 'Content-Type:' --data-binary "$call"
    check "no content type has status 415" "$status" 415
}

bodies() {
    post "$call" -H 'Transfer-Encoding: chunked'
    check "a chunked body is read" "$status $body" '200 *"result":19*'
    post "$(echo_of 500000)" -H 'Expect: 100-continue'
    check "Expect: 100-continue is answered with 100" "$headers" 'http/1.1 100*'
    check "and then with the reply, whole" "$status $((${#body} > 500000))" '200 1'
}

# Bodies with Expect, without Expect, and without a length.
limits() {
    local over
    over=$(echo_of $((2 * limit)))
    for how in 'Expect: 100-continue' 'Expect:' 'Transfer-Encoding: chunked'; do
        post "$over" -H "$how"
        check "2 MiB with '$how' has status 413" "$status" 413
        check "2 MiB with '$how' has a JSON-RPC error" "$body" '{*"error":{*-32007*}*'
    done
    post "$call"
    check "the next call is answered" "$body" '*"result":19*'
}

versions() {
    post "$call" --http1.0
    check "HTTP/1.0 is served" "$status $body" '200 *"result":19*'
    post "$call" "$two"
    check "HTTP/2 without an upgrade is served" "$status $version $body" '200 2 *"result":19*'
    post "$(echo_of 500000)" "$two"
    check "HTTP/2 with 500 kB each way is served" "$status $((${#body} > 500000))" '200 1'
    local connects
    connects=$(curl -sS "${always[@]}" --max-time 20 -o /dev/null -o /dev/null -w '%{num_connects} ' \
        -H 'Content-Type: application/json' -d "$call" "$url" "$url" || true)
    check "two calls share one connection" "$connects" '1 0 '
}

# Requests that a web page could send to a server on this machine.
strangers() {
    post "$call" -H 'Host: evil.example'
    check "a foreign Host has status 403" "$status" 403
    post "$call" -H 'Host: evil.example' "$two"
    check "a foreign authority in HTTP/2 has status 403" "$status" 403
    post "$call" -H 'Host: localhost'
    check "the Host localhost is served" "$status" 200
    for origin in http://evil.example null; do
        post "$call" -H "Origin: $origin"
        check "the Origin $origin has status 403" "$status" 403
    done
    ask -X OPTIONS -H 'Origin: http://evil.example' -H 'Access-Control-Request-Method: POST'
    check "a preflight is refused, and grants nothing" "$status $(grep -c '^access-control-allow' <<<"$headers")" '4?? 0'
}

# TLS only.
certificates() {
    local plain=${url/https/http}
    local speaks
    speaks=$(curl -sS "${always[@]}" --http2 --max-time 20 -o /dev/null -w '%{http_version} %{ssl_verify_result}' \
        -H 'Content-Type: application/json' -d "$call" "$url" || true)
    check "HTTP/2 is agreed on, and the certificate is good" "$speaks" '2 0'
    for version in --tlsv1.2 --tlsv1.3; do
        post "$call" "$version" --tls-max "${version#--tlsv}"
        check "TLS ${version#--tlsv} is served" "$status $body" '200 *"result":19*'
    done
    speaks=$(curl -sS --max-time 20 "$url" 2>&1 || true)
    check "curl does not believe the certificate unless it is told to" "$speaks" '*certificate*'
    speaks=$(curl -sS --max-time 20 -d "$call" "$plain" || true)
    check "a client without TLS is told what to call" "$speaks" '*https://*'
}

case $url in https:*) secure ;; esac
[ $# -lt 2 ] || start "$2"
answers
verbs
content_types
bodies
limits
versions
strangers
case $url in https:*) certificates ;; esac

[ "$broken" -eq 0 ] || { echo "$broken of $((held + broken)) assertions failed" >&2; exit 1; }
