#!/usr/bin/env bash
# CASE: 79-ignore-rule-added-later
# THEME: deletes-user-files
# SOURCE: derived (what a point holds stays covered)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: a rule that ignores a captured file is added afterwards. The file stays covered and comes back; what was first
#   made under the new rule is neither captured nor removed.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(out/made-later.txt)
case_setup() { repo; w .gitignore 'x.tmp'; w a.txt v1; commit init; w out/data.txt v1; w notes.local v1; }
case_mutate() { w .gitignore x.tmp out/ '*.local'; w a.txt v2; w out/data.txt v2; rm notes.local; w out/made-later.txt new; }
run_case
