#!/usr/bin/env bash
# CASE: 64-several-saves-at-once
# THEME: concurrency
# SOURCE: derived (acceptance story: eight at once)
# DATA-LOSS: no
# NEEDS: -
# STEPS: rwd save; phase mutate; parallel 8 save; phase same; rwd verify --rehash
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: eight processes save the same state at the same moment: all succeed, none writes into the workspace, and a point
#   made before them restores exactly.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; local i; for i in 1 2 3 4 5 6 7 8 9; do w d$i/f.txt "v1 $i"; done; commit init; w u.txt u1; }
case_mutate() { w a.txt v2; rm -r d3; w d4/f.txt v2; w n.txt n; w u.txt u2; }
run_case
