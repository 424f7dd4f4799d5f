#!/usr/bin/env bash
# CASE: 95-own-ignore-file
# THEME: deletes-user-files
# SOURCE: derived (.rwdignore)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: rules in .rwdignore count in a plain folder as in a repository: what they name is neither captured, rolled back
#   nor removed.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(data scratch.bin)
case_setup() { w .rwdignore data/ '*.bin'; w a.txt v1; w data/set.csv 'v1'; w scratch.bin b1; }
case_mutate() { w a.txt v2; w data/set.csv v2; w data/more.csv new; w scratch.bin b2; w n.txt n; }
run_case
