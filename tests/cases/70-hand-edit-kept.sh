#!/usr/bin/env bash
# CASE: 70-hand-edit-kept
# THEME: hand-edits
# SOURCE: derived (--keep-drift)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save --turn 1 --kind turn-start; phase mutate; rwd save --turn 1 --kind turn-end; phase then
# STEPS: rwd=3 to $1 --files --yes; says b.txt; phase same; rwd=0,5 to $1 --files $exact --yes --keep-drift
# STEPS: phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: with --keep-drift what the user edited or made by hand stays byte for byte, everything the agent did goes back,
#   and undo gives both together again.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(b.txt handmade.txt)
case_setup() { repo; w a.txt v1; w b.txt v1; w c.txt v1; commit init; }
case_mutate() { w a.txt agent; w b.txt agent; rm c.txt; w n.txt agent; }
case_then() { w b.txt 'by hand'; w handmade.txt 'by hand'; }
run_case
