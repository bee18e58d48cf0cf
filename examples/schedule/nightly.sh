#!/bin/sh
# One night: audit the copies, keep the history, compare with the night before. What cron, systemd and Kubernetes call here.
#
#   FLEET    the fleet file (docs/nightly.md, Many stores)
#   OUT      where results go: latest/ (this night's), tables/ (every night's), fleet.html, diff.txt, audit.log
#   KEEP     how long nights stay in tables/, such as 90d; left out: without end, and their files are not put together
#   METRICS  a file in the folder that node_exporter's textfile collector reads; left out: none is written
#
# Ends with the worse code of the audit and the comparison: 20, then 3, 10, 0. A comparison or a report that could not be made
# counts as 3. An audit that ends otherwise (2 wrong options or another run at work, 130 and 143 interrupted) ends the night at
# once with its code. Prints nothing on a quiet night, so that cron mails only what somebody should read.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd) || exit 3
: "${STORE_AUDIT:=$here/spark-submit.sh}"
if [ -z "${FLEET:-}" ] || [ -z "${OUT:-}" ]; then
  echo "nightly.sh: set FLEET (a file like examples/schedule/fleet.toml) and OUT (a folder for results)" >&2
  exit 2
fi
mkdir -p "$OUT" || exit 3
run=$(date -u +%Y-%m-%d) # a second run of one day takes the place of the first

"$STORE_AUDIT" audit --fleet "$FLEET" --out "$OUT/latest" --tables "$OUT/tables" --run-id "$run" \
  ${METRICS:+--prometheus "$METRICS"} >"$OUT/audit.log" 2>&1
code=$?
case $code in
  0) ;;
  3 | 10 | 20) cat "$OUT/audit.log" ;;
  *) # wrong options, another run at work, interrupted: the history stays as it is
    cat "$OUT/audit.log" >&2
    exit "$code"
    ;;
esac
result=$OUT/latest/result.json
if [ ! -f "$result" ] || grep -q '^ *"tables": null' "$result"; then # stopped before its tables were written: nothing to compare
  exit "$code"
fi
if grep -q '^  "run_id": ' "$result" && ! grep -q "^  \"run_id\": \"$run\"" "$result"; then # it never began: an older night's
  exit "$code"
fi

worse() { # the code that counts for more: of this night so far, and of one more command
  case $1 in
    0) ;;
    20) code=20 ;;
    10) [ "$code" -ne 0 ] || code=10 ;;
    *) [ "$code" -eq 20 ] || code=3 ;;
  esac
}

"$STORE_AUDIT" report --tables "$OUT/tables" --since 30d --out "$OUT/fleet.html"
worse $?
if [ -n "${KEEP:-}" ]; then # the report above has seen all nights
  : >"$OUT/tables.log"
  for action in "prune --keep $KEEP" compact vacuum; do
    # shellcheck disable=SC2086 # two or three words
    "$STORE_AUDIT" tables $action --tables "$OUT/tables" >>"$OUT/tables.log" 2>&1 || {
      cat "$OUT/tables.log"
      worse 3
      break
    }
  done
fi
last=$(cat "$OUT/last-run" 2>/dev/null) || last=
if [ "$last" != "$run" ]; then
  [ -z "$last" ] || echo "$last" >"$OUT/previous-run"
  echo "$run" >"$OUT/last-run"
fi
if [ -s "$OUT/previous-run" ]; then
  rm -f "$OUT/diff.txt"
  "$STORE_AUDIT" diff "$(cat "$OUT/previous-run")" "$run" --tables "$OUT/tables" --out "$OUT/diff.txt"
  differs=$?
  [ "$differs" -eq 0 ] || [ ! -f "$OUT/diff.txt" ] || cat "$OUT/diff.txt"
  worse "$differs"
fi
exit "$code"
