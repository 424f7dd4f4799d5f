#!/usr/bin/env bash
# CASE: 85-folder-with-ignored-file-in-the-way
# THEME: deletes-user-files
# SOURCE: derived (swap blocked by what is not covered)
# DATA-LOSS: yes
# NEEDS: -
# STEPS: rwd save; phase mutate; rwd save; rwd=3 to $1 --files $exact --yes; says conf; phase same
# STEPS: rwd=0,5 to $1 --files $exact --yes --skip-blocked; phase check; rwd=0,5 undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: a file became a folder, and the folder holds an ignored file that no checkpoint has. The restore refuses and
#   writes nothing; told to skip, it restores the rest and leaves the folder with the ignored file.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
KEEP=(conf)
case_setup() { repo; w .gitignore '*.key'; w conf 'a file'; w a.txt v1; commit init; }
case_mutate() { rm conf; w conf/x.txt x; w conf/secret.key 'only here'; w a.txt v2; w n.txt n; }
run_case
