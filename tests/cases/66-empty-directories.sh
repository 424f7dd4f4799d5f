#!/usr/bin/env bash
# CASE: 66-empty-directories
# THEME: wrong-state
# SOURCE: derived (git trees hold no empty directory)
# DATA-LOSS: no
# NEEDS: -
# EXPECT: empty directories, nested and private ones too, come back with their mode; empty ones made since are removed by
#   an exact restore.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
STRICT_MODE=1
case_setup() { repo; w a.txt v1; commit init; mkdir -p empty nest/in/side logs; mkdir private; chmod 700 private; mkdir shared; chmod 775 shared; w nest/f.txt f; }
case_mutate() { rmdir empty logs private shared; rm -r nest; w a.txt v2; mkdir -p fresh/deep; }
run_case
