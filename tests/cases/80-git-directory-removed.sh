#!/usr/bin/env bash
# CASE: 80-git-directory-removed
# THEME: repo-shapes
# SOURCE: derived (nothing is only borrowed)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: the user's .git is deleted after the checkpoint. Every file comes back from the store alone, no .git reappears,
#   and the store verifies.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; local i; for i in 1 2 3 4 5; do w f$i.txt "v1 $i"; commit c$i; done; g gc -q; w u.txt u1; }
case_mutate() { rm -rf .git; w f1.txt v2; rm f2.txt f3.txt; w u.txt u2; }
case_check() { [[ ! -e .git ]] || fail "a .git appeared"; }
run_case
