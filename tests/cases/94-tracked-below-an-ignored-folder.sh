#!/usr/bin/env bash
# CASE: 94-tracked-below-an-ignored-folder
# THEME: missed-change
# SOURCE: derived (tracked beats ignored)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: files that were added to git by force below an ignored folder are covered; their ignored neighbours are left
#   alone.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(build/o.o build/late.o)
case_setup() { repo; w .gitignore build/; w a.txt v1; w build/keep.txt v1; w build/sub/keep2.txt v1; w build/o.o o1; g add -f build/keep.txt build/sub/keep2.txt; commit init; w build/keep.txt 'edited by the user'; }
case_mutate() { w build/keep.txt v2; rm -r build/sub; w build/o.o o2; w build/late.o o3; w a.txt v2; }
run_case
