#!/usr/bin/env bash
# CASE: 72-subfolder-workspace
# THEME: scope
# SOURCE: derived (acceptance story: subfolder)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: the workspace is a folder of a larger repository. Nothing beside it is touched, ignore rules above it count, and
#   the repository's own git directory stays as it is.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(packages/server top.txt packages/app/run.log)
case_setup() { repo; w .gitignore '*.log'; w top.txt v1; w packages/app/a.txt v1; w packages/app/d/b.txt v1; w packages/server/s.txt v1; commit init; w packages/app/u.txt u1; w packages/app/run.log l1; printf packages/app > "$SIDE/workspace"; }
case_mutate() { w top.txt 'by hand'; w packages/server/s.txt 'by hand'; w packages/server/new.txt 'by hand'; w packages/app/a.txt v2; rm -r packages/app/d; w packages/app/u.txt u2; w packages/app/n.txt n; w packages/app/run.log l2; }
run_case
