#!/usr/bin/env bash
# CASE: 77-read-only-directory
# THEME: permissions
# SOURCE: derived (a blocked path leaves everything as it was)
# DATA-LOSS: yes
# NEEDS: nonroot
# STEPS: rwd save; phase mutate; rwd save; rwd=3 to $1 --files $exact --yes; says ro/; phase same
# STEPS: rwd=0,5 to $1 --files $exact --yes --skip-blocked; phase check; rwd=0,5 undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: the agent changed a file in a folder that is read-only now. Without --skip-blocked nothing at all is written;
#   with it the rest is restored and the file is as before or as at the checkpoint, never half.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
EITHER=(ro)
case_setup() { repo; w a.txt v1; w ro/f.txt v1; w ro/g.txt v1; commit init; chmod 555 ro; }
case_mutate() { chmod 755 ro; w ro/f.txt v2; rm ro/g.txt; chmod 555 ro; w a.txt v2; w n.txt n; }
run_case
