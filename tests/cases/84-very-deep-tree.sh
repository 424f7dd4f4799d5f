#!/usr/bin/env bash
# CASE: 84-very-deep-tree
# THEME: names
# SOURCE: derived (depth is bounded by paths, not by recursion)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: folders nested 300 deep with files on the way are captured and restored; removing and re-making them needs no
#   recursion that ends in an overflow.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
deep() { local i p=; for ((i = 0; i < 300; i++)); do p+=d$i/; done; printf %s "$p"; }
case_setup() { repo; w a.txt v1; commit init; local p; p=$(deep); w "${p}bottom.txt" v1; w d0/d1/d2/d3/middle.txt v1; }
case_mutate() { rm -r d0/d1/d2/d3; w d0/d1/other.txt n; w a.txt v2; }
run_case
