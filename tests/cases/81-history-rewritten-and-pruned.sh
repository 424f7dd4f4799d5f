#!/usr/bin/env bash
# CASE: 81-history-rewritten-and-pruned
# THEME: repo-shapes
# SOURCE: derived (nothing is only borrowed)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: the commits and staged blobs of the checkpoint are dropped from the user's repository by a hard reset, an
#   expired reflog and git gc --prune=now. The checkpoint restores all the same.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt base; commit base; local i; for i in 1 2 3; do w f$i.txt "only in a later commit $i"; commit c$i; done; w staged.txt 'only staged'; g add staged.txt; g gc -q; }
case_mutate() { g reset -q --hard HEAD~3; g reflog expire --expire=now --all; rm -f .git/ORIG_HEAD; g gc -q --prune=now; w a.txt agent; }
run_case
