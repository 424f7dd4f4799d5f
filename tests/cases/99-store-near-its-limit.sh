#!/usr/bin/env bash
# CASE: 99-store-near-its-limit
# THEME: retention
# SOURCE: derived (large files are left out singly, small ones never)
# DATA-LOSS: yes
# NEEDS: env
# STEPS: rwd save; says budget; phase mutate; rwd save; rwd=3 to $1 --files $exact --yes; rwd=0,5 to $1 --files $exact --yes --overwrite-drift; phase check; rwd=0,5 undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: the store may not grow past a limit that the workspace's large files exceed. What does not fit is left out by
#   name, everything small is captured and restored. Who changed what was left out is unknown: that takes a decision,
#   and then it is guarded all the same.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
EITHER=(big1.bin big2.bin big3.bin big4.bin)
case_setup() { repo; w a.txt v1; w d/b.txt v1; commit init; w u.txt u1; local i; for i in 1 2 3 4; do head -c 1500000 /dev/urandom > big$i.bin; done; printf 'export RWD_CAPTURE_STORE_MAX_BYTES=3000000\n' > "$SIDE/env.sh"; }
case_mutate() { w a.txt v2; rm -r d; w u.txt u2; local i; for i in 1 2 3 4; do printf 'x' >> big$i.bin; done; }
run_case
