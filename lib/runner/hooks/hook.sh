#!/bin/sh
# Reports one hook of Claude Code to Interlude's companion (`interlude runner hooks`), and prints the answer.
#
#   hook.sh <event> <data directory> [seconds]      with the hook's JSON on stdin
#
# Sends its start time, because the companion may receive it much later.
#
# Never blocks the agent: without a companion or curl, or if the companion hangs or another program has its port, it
# prints nothing and exits with 0, at most two seconds after its input. Needs only the shell and curl, and parses no JSON.
#
# With seconds it waits that long for a person's answer, for hooks during which the agent asks in the terminal as well.
# A signal ends it and its curl.

set -u
exec 2>/dev/null

event=${1:-unknown}
patience=${3:-}
control=${INTERLUDE_CONTROL:-${INTERLUDE_DATA_DIR:-${2:-.}}/control/${INTERLUDE_CONTROL_NAME:-hooks}.control}
input=''
blocked=''
doing='start'
base=''

# Its first line is `# http://127.0.0.1:PORT PID`; the rest is for curl.
[ -r "$control" ] || exit 0
command -v curl >/dev/null || exit 0
{ IFS=' ' read -r _ base _ <"$control"; } || exit 0
case $base in http://127.0.0.1:*) ;; *) exit 0 ;; esac
# Milliseconds. If the clock has seconds only, the end of that second.
ran=$(date +%s%3N)
case $ran in '' | *[!0-9]*) ran=$(date +%s)999 ;; esac

# How Claude Code was started: `cli` in a terminal.
from=${CLAUDE_CODE_ENTRYPOINT:-}
case $from in *[!a-z-]*) from='' ;; esac

if command -v timeout >/dev/null; then
  within() { timeout "$@"; }
else
  within() { shift; "$@"; }
fi

# post <seconds> <path>: sends the input, prints the answer
post() {
  printf '%s' "$input" | within 1 curl -q -s -f -K "$control" --connect-timeout 0.4 --max-time "$1" \
    -H 'content-type: application/json' --data-binary @- "$base$2"
}

# On every exit: reports a failure, posts the end of a turn, and lets the agent continue.
finish() {
  code=$?
  trap - EXIT HUP INT TERM
  if [ "$code" -ne 0 ] && [ "$doing" != 'ask the companion' ]; then
    post 0.4 "/hook-fatal?hook=$event&error=exit%20$code:%20$(printf '%s' "$doing" | tr ' ' '+')" >/dev/null
  fi
  if [ "$event" = Stop ] && [ -z "$blocked" ]; then
    post 0.5 "/status?state=idle&at=$ran" >/dev/null
  fi
  exit 0
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

doing='read the input'
input=$(within 1 cat) || exit
doing='ask the companion'
case $patience in
'' | *[!0-9]*) ;;
*)
  printf '%s' "$input" | curl -q -s -f -K "$control" --connect-timeout 0.4 --max-time "$((patience + 2))" \
    -H 'content-type: application/json' --data-binary @- "$base/hooks/$event?pid=$PPID&at=$ran&from=$from&within=$patience" &
  waiting=$!
  trap 'kill "$waiting"; exit 143' HUP INT TERM
  wait "$waiting"
  exit 0
  ;;
esac
answer=$(post 0.9 "/hooks/$event?pid=$PPID&at=$ran&from=$from") || exit
doing='answer'
case $answer in *'"decision":"block"'* | *'"additionalContext":'*) blocked=yes ;; esac
[ -z "$answer" ] || printf '%s\n' "$answer" || exit
