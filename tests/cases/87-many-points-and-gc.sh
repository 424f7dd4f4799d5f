#!/usr/bin/env bash
# CASE: 87-many-points-and-gc
# THEME: retention
# SOURCE: derived (retention keeps what it promises)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save; rwd save --turn 1 --kind turn-start; repeat 55 tick save --kind mutation; phase then; rwd save --turn 1 --kind turn-end; rwd=0,6 gc; phase same; rwd verify --rehash
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: after more captures before tools than retention keeps, and a collection, the point that was saved by hand still
#   restores and the store verifies.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; w count.txt 0; }
case_mutate() { w a.txt v2; rm b.txt; }
case_tick() { local n; n=$(<count.txt); w count.txt $((n + 1)); }
case_then() { w n.txt n; }
run_case
