#!/usr/bin/env bash
# CASE: 83-parent-became-link-to-outside
# THEME: symlinks
# SOURCE: derived (never write through a changed ancestor)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: the agent moved a folder away and put a link to an outside folder with the same file names in its place. The
#   restore replaces the link; no file outside is written, created or removed.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w conf/a.txt v1; w conf/deep/b.txt v1; commit init; w conf/u.txt u1; w "$SIDE/outside/conf/a.txt" outside; w "$SIDE/outside/conf/deep/b.txt" outside; w "$SIDE/outside/conf/extra.txt" outside; }
case_mutate() { mv conf conf.old; ln -s "$SIDE/outside/conf" conf; }
run_case
