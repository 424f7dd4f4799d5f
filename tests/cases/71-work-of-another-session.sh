#!/usr/bin/env bash
# CASE: 71-work-of-another-session
# THEME: hand-edits
# SOURCE: derived (foreign changes need a decision)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save --session one --turn 1 --kind turn-start; phase mutate; rwd save --session one --turn 1 --kind turn-end
# STEPS: rwd save --session two --turn 1 --kind turn-start; phase then; rwd save --session two --turn 1 --kind turn-end
# STEPS: rwd=3 to $1 --session one --files $exact --yes; says b.txt; phase same
# STEPS: rwd to $1 --session one --files $exact --yes --with-others; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: two unrelated sessions work in one workspace. Taking one back does not silently take the other's later change
#   along: it is refused and named; with --with-others it is restored, and undo brings it back.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; }
case_mutate() { w a.txt 'first session'; }
case_then() { w b.txt 'second session'; }
run_case
