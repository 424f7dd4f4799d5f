#!/usr/bin/env bash
# CASE: 65-hard-links
# THEME: bytes
# SOURCE: derived (a hard link is replaced, never written through)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: two names of one file and a second name outside the workspace: each path gets its bytes of the checkpoint back,
#   and the file outside, which the agent's in-place write reached, stays as that write left it.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt one; ln a.txt b.txt; commit init; w u.txt u1; ln u.txt "$SIDE/outside/u"; mkdir d; ln a.txt d/c.txt; }
case_mutate() { printf 'agent\n' > a.txt; printf 'agent\n' > u.txt; rm d/c.txt; ln b.txt e.txt; }
case_check() { [[ $(<"$SIDE/outside/u") == agent ]] || fail "written through a hard link"; }
run_case
