#!/usr/bin/env bash
# CASE: 93-large-tracked-file
# THEME: missed-change
# SOURCE: derived (tracked files have no cap)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: a tracked file above the cap for untracked files is captured and restored, changed, truncated or deleted.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; blob big.bin 3500000 'tracked content'; blob big2.bin 3500000 'other content'; blob big3.bin 3500000 'third'; commit init; blob big.bin 3600000 'edited by the user, not committed'; }
case_mutate() { blob big.bin 3600000 'changed by the agent'; : > big2.bin; rm big3.bin; }
run_case
