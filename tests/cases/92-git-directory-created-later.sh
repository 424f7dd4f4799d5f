#!/usr/bin/env bash
# CASE: 92-git-directory-created-later
# THEME: repo-shapes
# SOURCE: derived (evidence while .git comes and goes)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: a plain folder becomes a repository after the checkpoint, so other ignore rules hold now. It is the same
#   workspace: files come back, .git stays, and what the old rules had left out is not removed.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(node_modules dist)
case_setup() { w a.txt v1; w d/b.txt v1; w node_modules/p/index.js dep; w dist/o.js built; }
case_mutate() { repo; w a.txt v2; commit init; rm -r d; w node_modules/q/index.js dep2; w dist/o.js rebuilt; w n.txt n; }
run_case
