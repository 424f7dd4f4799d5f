#!/usr/bin/env bash
# CASE: 98-exactly-at-the-cap
# THEME: missed-change
# SOURCE: derived (exactly 2 MiB is out, one byte less is in)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; says at.bin; says too-large; silent below.bin; phase mutate; rwd save
# STEPS: rwd to $1 --files $exact --yes; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: an untracked file of exactly 2 MiB is left out, said so, and never touched; one byte less is captured and comes
#   back.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(at.bin)
case_setup() { repo; w a.txt v1; commit init; blob at.bin 2097152 'exactly at the cap'; blob below.bin 2097151 'one byte less'; }
case_mutate() { w a.txt v2; blob at.bin 2097152 'changed by the agent'; blob below.bin 2097151 'changed by the agent'; }
run_case
