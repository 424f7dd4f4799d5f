#!/usr/bin/env bash
# CASE: 67-literal-selection
# THEME: scope
# SOURCE: derived (a selected path is a path, never a pattern)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save
# STEPS: rwd to $1 --files $exact --yes -- a[1].txt *.md pick; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: only the named paths are restored; a name with brackets or a star means the file of that name and nothing else.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(a1.txt one.md sub other.txt)
case_setup() { repo; w 'a[1].txt' v1; w a1.txt v1; w '*.md' v1; w one.md v1; w sub/x.txt v1; w other.txt v1; w pick/x.txt v1; w pick/y.txt v1; commit init; }
case_mutate() { local f; for f in 'a[1].txt' a1.txt '*.md' one.md sub/x.txt other.txt pick/x.txt; do w "$f" v2; done; rm pick/y.txt; }
run_case
