#!/usr/bin/env bash
# CASE: 110-conversation-goes-back-with-the-files
# THEME: conversation
# SOURCE: derived (acceptance story: both)
# DATA-LOSS: yes
# NEEDS: env
# STEPS: rwd save --session dsh:s1 --turn 1 --kind turn-start; rwd save --session dsh:s1 --turn 1 --kind turn-end
# STEPS: rwd save --session dsh:s1 --turn 2 --kind turn-start; phase mutate; rwd save --session dsh:s1 --turn 2 --kind turn-end
# STEPS: rwd preview t1 --both $exact; says end of turn 1; phase same
# STEPS: rwd to t1 --both $exact --yes; says "childSessionId":"session-; says "rule":"end of turn 1"; phase check
# STEPS: rwd session verify s1; says "loadable":true; rwd undo --yes; phase check-redo; rwd verify --rehash
# EXPECT: files and conversation go back to the end of one turn. The conversation becomes a session of its own, whose events are
#   the first ones of the old log; the old log is as it was, byte for byte.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w a.txt v1; w gone.txt g; commit init; w u.txt u1; dsh_log 3; }
case_mutate() { w a.txt v2; rm gone.txt; w u.txt u2; w n.txt n; }
case_check() { dsh_log_unchanged
  local f new=; for f in "$LOGS"/session-*/session.jsonl; do new=$f; done
  [[ -z $new ]] && return   # nothing was restored, or by hand
  head -n 3 < <(tail -n +2 "$LOGS/s1/session.jsonl") > "$SIDE/wanted"; head -n 3 < <(tail -n +2 "$new") > "$SIDE/found"
  cmp -s "$SIDE/wanted" "$SIDE/found" || fail "the child's first events are not the parent's"
  grep -qF '"turn":2' "$new" && fail "the child has events of turn 2"; return 0; }
LOGS=$SIDE/dsh/sessions/--$(sed 's|^/*||; s|/|-|g' <<< "$DIR")--
run_case
