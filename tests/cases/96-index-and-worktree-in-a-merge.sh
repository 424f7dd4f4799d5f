#!/usr/bin/env bash
# CASE: 96-index-and-worktree-in-a-merge
# THEME: user-git-state
# SOURCE: derived (a merge in progress stays one)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: the agent's merge ended in conflicts. The files come back; MERGE_HEAD, the conflicted index and the refs stay
#   exactly as they are.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt base; w b.txt base; commit base; g branch other; w a.txt ours; commit ours; g checkout -q other; w a.txt theirs; w b.txt theirs; commit theirs; g checkout -q main; w u.txt u1; }
case_mutate() { g merge -q other >/dev/null 2>&1; [[ -f .git/MERGE_HEAD ]] || die "no conflict"; w u.txt u2; }
run_case
