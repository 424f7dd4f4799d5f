#!/usr/bin/env bash
# CASE: 90-preview-writes-nothing
# THEME: preview
# SOURCE: derived (acceptance story: preview touches nothing)
# DATA-LOSS: no
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save; rwd preview $1 --files $exact; says a.txt; says gone.txt; phase same; rwd preview $1 --files $exact; phase same
# STEPS: rwd=4 to $1 --files $exact; phase same
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: preview names what would happen and writes nothing, and a restore without a yes and without anybody to ask is
#   declined with nothing written.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w gone.txt g; commit init; }
case_mutate() { w a.txt v2; rm gone.txt; w n.txt n; }
run_case
