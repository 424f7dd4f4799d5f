#!/usr/bin/env bash
# CASE: 78-growing-past-the-cap
# THEME: missed-change
# SOURCE: derived (what a point holds stays covered)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: an untracked file is small at the checkpoint and grows past the size cap afterwards. It stays covered: the
#   restore brings the small one back exactly, and undo the large one.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; commit init; w data.log 'first line'; blob near.bin 2097151 'just below the cap'; }
case_mutate() { w a.txt v2; blob data.log 5000000 'grown by the agent'; printf 'xx' >> near.bin; }
run_case
