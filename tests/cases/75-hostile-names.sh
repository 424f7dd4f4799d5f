#!/usr/bin/env bash
# CASE: 75-hostile-names
# THEME: names
# SOURCE: derived (names are bytes)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: names with newlines, leading dashes, trailing blanks, dots inside, shell and git magic, control characters and
#   bytes that are no UTF-8 are captured and restored like any other, as files and as folders.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
NAMES=($'new\nline' $'\n' -rf --exact -- 'trail ' ' ' ' lead' 'a..b' '..c' 'd..' ... 'back\slash' "it's" 'say "hi"' $'tab\there' '*' '?' '[x]' '{a,b}' '$HOME' '$(id)' '`id`' '~' ':(glob)x' ':!x' '!neg' '#hash' 'a:b' 'C:x' CON 'x;y' 'p|q' '&' $'\xff\xfe.bin' $'caf\xe9' $'\x01\x1b[31m' $'del\x7f' '%s%n' '@' '@{u}' HEAD -)
case_setup() { repo; w a.txt v1; commit init; local n; mkdir files dirs; for n in "${NAMES[@]}"; do printf 'v1\n' > "files/$n"; mkdir "dirs/$n"; printf 'v1\n' > "dirs/$n/$n"; done; }
case_mutate() { local n i=0; for n in "${NAMES[@]}"; do if (( i++ % 2 )); then rm "files/$n"; rm -r "dirs/$n"; else printf 'v2\n' > "files/$n"; printf 'v2\n' > "dirs/$n/$n"; fi; printf 'new\n' > "files/$n.new"; done; w a.txt v2; }
run_case
