#!/usr/bin/env bash
# CASE: 111-open-turn-is-no-place-to-cut
# THEME: conversation
# SOURCE: derived (acceptance story: conversation)
# DATA-LOSS: no
# NEEDS: env
# STEPS: rwd save; phase mutate; rwd save
# STEPS: rwd=3 to t3 --chat --yes --session dsh:s1; says OPEN_TURN; phase same; rwd=3 to t3 --both --yes --session dsh:s1; says OPEN_TURN; phase same
# STEPS: rwd=9 to t9 --chat --yes --session dsh:s1; phase same; rwd=9 to t1 --yes --session dsh:s1; says --chat; phase same
# STEPS: rwd=3 session fork s1; says OPEN_TURN; rwd=3 session fork s1 --at 1; says OPEN_TURN; rwd=3 session fork s1 --at 99; says INVALID_BOUNDARY
# STEPS: rwd=9 session fork s2; says SESSION_NOT_FOUND; rwd=3 session fork s1 --turn 1 --child s1; says SESSION_ALREADY_EXISTS; phase same; phase untouched-log
# STEPS: rwd=4 to t1 --chat --session dsh:s1; phase same; rwd to t1 --chat --yes --session dsh:s1; says "contextOnly":true; phase same
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo
# EXPECT: a turn that has not ended, a position that is not there and an id that is taken are refused by name and nothing is written. With
#   --chat only the conversation goes back, resolved from the log alone; the files stay as they are, and so does the old log.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; commit init; dsh_log 2 open; }
case_mutate() { w a.txt v2; w n.txt n; }
case_check() { dsh_log_unchanged; }
LOGS=$SIDE/dsh/sessions/--$(sed 's|^/*||; s|/|-|g' <<< "$DIR")--
if [[ $PHASE == untouched-log ]]; then dsh_log_unchanged; n=0; for f in "$LOGS"/*; do n=$((n+1)); done; (( n == 1 && !FAILED )) || { echo "FAIL: $n sessions"; exit 1; }; exit 0; fi
run_case
