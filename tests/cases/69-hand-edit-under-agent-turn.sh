#!/usr/bin/env bash
# CASE: 69-hand-edit-under-agent-turn
# THEME: hand-edits
# SOURCE: derived (hand-made across turns)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save --turn 1 --kind turn-start; phase mutate; rwd save --turn 1 --kind turn-end; phase then
# STEPS: rwd save --turn 2 --kind turn-start; phase then; rwd save --turn 2 --kind turn-end
# STEPS: rwd=3 to t1^ --files $exact --yes; says a.txt; phase same
# STEPS: rwd to $1 --files $exact --yes --overwrite-drift; phase check; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: the user edits a file between two turns and the agent then edits it too. Going back before both turns needs a
#   decision and names the file; nothing is written until it is given; undo brings the last version back.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w b.txt v1; commit init; w u.txt u1; }
case_mutate() { w a.txt 'agent, turn 1'; w u.txt 'agent, turn 1'; }
case_then() { if [[ ! -e $SIDE/edited ]]; then : > "$SIDE/edited"; w a.txt 'by hand'; else w a.txt 'by hand' 'and the agent on top'; w b.txt 'agent, turn 2'; fi; }
run_case
