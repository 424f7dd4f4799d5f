#!/usr/bin/env bash
# CASE: 68-unknown-target-or-path
# THEME: scope
# SOURCE: derived (refuse before writing)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save
# STEPS: rwd=refused to $1 --files $exact --yes -- a.txt no/such/path; phase same
# STEPS: rwd=9 to no-such-name --files $exact --yes; phase same; rwd=refused to ffffffffffffffff --files $exact --yes; phase same
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: a target that does not exist, an ambiguous or malformed one, and a selected path that neither side knows are
#   refused before anything is written, the known path beside it included.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; }
case_mutate() { w a.txt v2; w b.txt v2; w n.txt n; }
run_case
