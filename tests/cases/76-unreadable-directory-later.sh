#!/usr/bin/env bash
# CASE: 76-unreadable-directory-later
# THEME: permissions
# SOURCE: derived (a skipped ancestor proves nothing absent)
# DATA-LOSS: yes
# NEEDS: nonroot
# STEPS: rwd save; phase mutate; rwd save; rwd=0,3,5 to $1 --files $exact --yes --skip-blocked; phase check; rwd verify --rehash
# EXPECT: a folder that was captured may not be read any more when the restore runs. Its files are not taken for deleted:
#   they are neither removed nor replaced, the folder is named, and the rest is restored.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(locked)
case_setup() { repo; w a.txt v1; w locked/in/x.txt x1; w locked/y.txt y1; commit init; w u.txt u1; }
case_mutate() { w a.txt v2; w u.txt u2; w locked/in/new.txt n; chmod 000 locked; }
case_check() { [[ -d locked ]] || fail "the folder vanished"; chmod 700 locked; [[ -f locked/in/x.txt && -f locked/y.txt && -f locked/in/new.txt ]] || fail "a file in the unreadable folder vanished"; chmod 000 locked; }
run_case
