#!/usr/bin/env bash
# CASE: 101-store-damaged
# THEME: store
# SOURCE: derived (acceptance story: doctor)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save; phase tick; rwd=8 verify --rehash; phase same; rwd=refused to $1 --files $exact --yes; phase same
# EXPECT: the store lost its packs. Verification says so, and a restore from a point that is hit is refused before
#   anything is written.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; }
case_mutate() { w a.txt v2; rm b.txt; w n.txt n; }
case_tick() { rm -rf "${DIR%/*}"/store/workspaces/*/git/objects/pack/* "${DIR%/*}"/store/workspaces/*/git/objects/[0-9a-f][0-9a-f]; }
run_case
