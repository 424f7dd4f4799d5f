#!/usr/bin/env bash
# CASE: 73-workspace-cloned-anew
# THEME: repo-shapes
# SOURCE: derived (an old point is no evidence about another directory)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd=refused to $1 --files --exact --yes; phase same; rwd save; phase same; rwd verify --rehash
# EXPECT: the workspace was moved away and cloned again under its path. The old points do not restore over the new clone,
#   and remove nothing there, without being told to; new captures work.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w d/b.txt v1; commit init; w u.txt u1; }
case_mutate() { mv "$DIR" "$SIDE/old"; g clone -q "$SIDE/old" "$DIR"; cd "$DIR" || die cd; w a.txt 'work in the new clone'; w only-here.txt 'never captured'; }
run_case
