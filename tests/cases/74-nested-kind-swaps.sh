#!/usr/bin/env bash
# CASE: 74-nested-kind-swaps
# THEME: type-changes
# SOURCE: derived (directory, file, link and FIFO swapped, nested)
# DATA-LOSS: yes
# NEEDS: -
# EXPECT: every kind of entry turned into every other, inside directories that changed kind themselves, is undone; links
#   are not followed and FIFOs not opened on the way.
. "${CASELIB:-$(dirname "$0")/lib.sh}"
case_setup() { repo; w file-dir f; w file-link f; w file-fifo f; w dir-file/x/y.txt y; w dir-link/a/b.txt b; w dir-fifo/z.txt z; ln -s file-dir link-file; ln -s dir-file link-dir; ln -s nowhere link-fifo
  w nest/dir-file/deep/file-dir d; ln -s ../../file-dir nest/dir-file/link-dir; commit init; mkfifo fifo-file; mkfifo fifo-dir; mkfifo fifo-link; w "$SIDE/outside/victim/b.txt" outside; }
case_mutate() { rm file-dir; w file-dir/in/side.txt n; rm file-link; ln -s "$SIDE/outside/victim/b.txt" file-link; rm file-fifo; mkfifo file-fifo
  rm -r dir-file; w dir-file file; rm -r dir-link; ln -s "$SIDE/outside/victim" dir-link; rm -r dir-fifo; mkfifo dir-fifo
  rm link-file; w link-file file; rm link-dir; w link-dir/x/new.txt n; rm link-fifo; mkfifo link-fifo
  rm fifo-file; w fifo-file file; rm fifo-dir; w fifo-dir/n.txt n; rm fifo-link; ln -s file-dir fifo-link
  rm -r nest/dir-file; w nest/dir-file file; w nest/new/n.txt n; }
run_case
