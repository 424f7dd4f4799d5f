#!/usr/bin/env bash
# CASE: 88-no-programs-at-all
# THEME: repo-shapes
# SOURCE: derived (no process is spawned)
# LINES: TE17
# DATA-LOSS: no
# NEEDS: env
# EXPECT: PATH is empty: neither git nor a shell can be found. Captures, restore and undo work all the same.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w d/b.txt v1; commit init; w u.txt u1; printf 'export PATH=/nonexistent HOME=%q\n' "$SIDE" > "$SIDE/env.sh"; }
case_mutate() { w a.txt v2; rm -r d; w u.txt u2; w n.txt n; }
run_case
