#!/usr/bin/env bash
# CASE: 97-nothing-to-do
# THEME: undo
# SOURCE: derived (exit 6 and untouched files)
# DATA-LOSS: no
# NEEDS: -
# STEPS: rwd save; rwd=6 to $1 --files $exact --yes; phase mutate; rwd save
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd=6 to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: going to the state that is already there does nothing: no file is rewritten, no modification time changes, and
#   it says that there was nothing to do.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
STRICT_MTIME=(a.txt d/b.txt)
case_setup() { repo; w a.txt v1; w d/b.txt v1; w c.txt v1; commit init; touch -d '2021-01-01' a.txt d/b.txt; }
case_mutate() { w c.txt v2; }
run_case
