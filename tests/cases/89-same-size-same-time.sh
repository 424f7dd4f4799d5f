#!/usr/bin/env bash
# CASE: 89-same-size-same-time
# THEME: missed-change
# SOURCE: derived (stamps that lie)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: a file is rewritten with the same size and its old modification time put back, and another is exchanged for a
#   copy with equal size and time. Both changes are seen and undone.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt aaaa; w b.txt aaaa; w c.txt aaaa; commit init; w u.txt aaaa; touch -d '2020-02-02 02:02:02' a.txt b.txt c.txt u.txt; g status >/dev/null; }
case_mutate() { printf 'bbbb\n' > a.txt; touch -d '2020-02-02 02:02:02' a.txt; printf 'bbbb\n' > "$SIDE/x"; touch -d '2020-02-02 02:02:02' "$SIDE/x"; mv "$SIDE/x" b.txt; printf 'bbbb\n' > u.txt; touch -r c.txt u.txt; }
run_case
