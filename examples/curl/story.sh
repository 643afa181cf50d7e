#!/bin/sh
# An order from the shell: started, approved and awaited over HTTP, with curl alone.
#
#     PAWL_URL=http://127.0.0.1:3000/pawl PAWL_TOKEN=… sh story.sh A-1 cart-77
#
# PAWL_URL is where the HTTP API is mounted (examples/http-node is such a server). Run it again with the same cart: it finds
# the same run, and the approval counts once.
set -eu

sku=$1
cart=$2
case $sku$cart in
*[!A-Za-z0-9_-]*)
  echo "Letters, digits, - and _ only: this script does not escape JSON." >&2
  exit 2
  ;;
esac

# Sends a request and sets $answer. The token goes through a pipe, because all users of a machine can read the arguments of
# programs. After an answer such as 503, or without one, curl tries again; each request below may be repeated, because it only
# reads or carries a key.
pawl() {
  path=$1
  shift
  answer=$(
    printf 'header = "Authorization: Bearer %s"\n' "$PAWL_TOKEN" |
      curl --config - --silent --show-error --fail-with-body --max-time 60 --retry 5 --retry-connrefused \
        "$@" "$PAWL_URL/api/v1$path"
  )
}

post() {
  path=$1
  body=$2
  shift 2
  pawl "$path" --header 'Content-Type: application/json' --data "$body" "$@"
}

fail() {
  echo "$answer" >&2
  exit 1
}

post /workflows/order/runs "{\"input\":{\"sku\":\"$sku\"}}" --header "Idempotency-Key: $cart" || fail
run=$(echo "$answer" | sed -n 's/^{"id":"\([0-9a-f-]*\)".*/\1/p')
echo "run $run"

approval="{\"name\":\"approved\",\"payload\":{\"by\":\"finance\"},\"key\":\"$cart-approval\"}"
post "/runs/$run/signals" "$approval" ||
  case $answer in
  *'"code":"INVALID_STATE"'*) ;; # The run has ended: it was approved before.
  *) fail ;;
  esac

# The server answers when the run has ended, or after 30 seconds with the status that the run has then.
while pawl "/runs/$run/result?plain=1" || fail; do
  case $answer in
  '{"status":"completed",'*) break ;;
  '{"status":"failed",'* | '{"status":"canceled",'*) fail ;;
  esac
done
echo "$answer"
