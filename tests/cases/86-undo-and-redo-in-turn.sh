#!/usr/bin/env bash
# CASE: 86-undo-and-redo-in-turn
# THEME: undo
# SOURCE: derived (undo is exact in both directions)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; rwd=6 undo --yes; phase mutate; rwd save; rwd=6 redo --yes; phase same
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo
# STEPS: rwd redo --yes; phase check; rwd undo --yes; phase check-redo; rwd=6 undo --yes; phase same; rwd verify --rehash
# EXPECT: restore, undo, redo, undo give exactly the two states in turn, modes, links and empty folders included; when
#   nothing is left to undo or redo it says so and writes nothing.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w bin/run v1; chmod 755 bin/run; ln -s a.txt l; commit init; mkdir empty; w u.txt u1; chmod 600 u.txt; }
case_mutate() { w a.txt v2; chmod 644 bin/run; rm l; ln -s u.txt l; rmdir empty; w u.txt u2; w new/n.txt n; }
run_case
