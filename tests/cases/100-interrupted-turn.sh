#!/usr/bin/env bash
# CASE: 100-interrupted-turn
# THEME: hand-edits
# SOURCE: derived (an interrupted turn is that turn's work)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save --turn 1 --kind turn-start; phase mutate; rwd=0,6 save --turn 1 --kind interrupt
# STEPS: rwd preview $1 --files $exact; says uncaptured; phase same
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: a turn was interrupted in the middle, so no capture closed it. Its damage needs no decision: it is listed,
#   guarded and restored, and undo brings it back.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; w u.txt u1; }
case_mutate() { w a.txt 'half done'; rm b.txt; w u.txt 'half done'; w n.txt n; }
run_case
