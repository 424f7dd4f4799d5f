#!/usr/bin/env bash
# CASE: 91-stale-plan
# THEME: preview
# SOURCE: derived (what was shown is what is done)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save; rwd preview $1 --files $exact --overwrite-drift; phase then
# STEPS: rwd=3 to $1 --files $exact --overwrite-drift --yes --plan $plan; phase same
# STEPS: rwd preview $1 --files $exact --overwrite-drift; rwd to $1 --files $exact --overwrite-drift --yes --plan $plan; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: a planned file changes after the preview. The restore that names the preview's plan refuses and writes nothing;
#   after a new preview it goes through.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; }
case_mutate() { w a.txt v2; w b.txt v2; }
case_then() { w a.txt 'changed after the preview'; }
run_case
