#!/usr/bin/env bash
# CASE: 82-special-mode-bits
# THEME: metadata
# SOURCE: derived (the recorded mode, all of it)
# DATA-LOSS: no
# NEEDS: -
# EXPECT: set-user-id, set-group-id and sticky bits, unusual group and world bits, of files and of folders that have to be
#   made again, come back as recorded.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
STRICT_MODE=1
case_setup() { repo; w tool t; w gid g; w odd o; w open o; commit init; chmod 4755 tool; chmod 2755 gid; chmod 640 odd; chmod 666 open; mkdir drop team; chmod 1777 drop; chmod 2775 team; w drop/f.txt f; w team/f.txt f; }
case_mutate() { chmod 755 tool; rm gid; chmod 600 odd; w open agent; chmod 644 open; rm -r drop team; }
run_case
