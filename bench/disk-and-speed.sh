#!/usr/bin/env bash
# What a long working day costs: 20,000 files of 300 MiB, 200 turns of one to five edits, an asset of 5 MiB that changes
# twenty times. Prints what a capture took, what the store holds beside what changed (each changed file packed by gzip -1),
# whether `rwd du` agrees with the disk, and whether `rwd gc` honours a budget and a pin.
#
# Usage: bench/disk-and-speed.sh RWD [TURNS]. Works in a directory of its own below TMPDIR and removes it.
set -euo pipefail
rwd=$(realpath "$1") turns=${2:-200}
top=$(mktemp -d) && trap 'rm -rf "$top"' EXIT
work=$top/work data=$top/data
mkdir -p "$work"
export HOME=$top XDG_CONFIG_HOME=$top/config RWD_DATA_DIR=$data
RANDOM=7

# Text that packs like source, cut into files of 15,360 bytes.
lines='BEGIN { srand(7); for (;;) printf "let %x = %s(%d);\n", rand() * 1e6, n++ % 3 ? "read" : "write", rand() * 1e4 }'
head -c $((20000 * 15360)) < <(awk "$lines" 2> /dev/null) | (cd "$work" && split -a 5 -d -b 15360 - f)
for dir in $(seq -w 0 199); do
    mkdir "$work/d$dir" && mv "$work"/f"$dir"?? "$work/d$dir" 2>/dev/null || true
done
files=("$work"/*/f*)
head -c 5242880 /dev/urandom > "$work/asset.bin"

# By default what git does not know is left out from 2 MiB on.
"$rwd" -q config set capture.untracked_max_bytes 16777216 > /dev/null
now() { date +%s%N; }
begun=$(now)
"$rwd" -q -C "$work" save --name first > "$top/first"
echo "files ${#files[@]}, $(du -sm "$work" | cut -f1) MiB; first capture $((($(now) - begun) / 1000000)) ms"
bytes() { du -sb "$data" | cut -f1; }
start=$(bytes) changed=0
for turn in $(seq "$turns"); do
    begun=$(now)
    "$rwd" -q -C "$work" save --session s --turn "$turn" --kind turn-start > /dev/null
    echo $((($(now) - begun) / 1000)) >> "$top/times"
    for _ in $(seq $((RANDOM % 5 + 1))); do
        file=${files[$(((RANDOM * 32768 + RANDOM) % ${#files[@]}))]}
        echo "// turn $turn, $RANDOM" >> "$file"
        changed=$((changed + $(gzip -1 -c "$file" | wc -c)))
    done
    if ((turn % (turns / 20) == 0)); then
        head -c 5242880 /dev/urandom > "$work/asset.bin"
        changed=$((changed + 5242880))
    fi
    begun=$(now)
    "$rwd" -q -C "$work" save --session s --turn "$turn" --kind turn-end > /dev/null
    echo $((($(now) - begun) / 1000)) >> "$top/times"
done
sort -n "$top/times" | awk '{ t[NR] = $1 } END { printf "captures %d, median %.1f ms, 95 %% %.1f ms, longest %.1f ms\n", NR, t[int((NR + 1) / 2)] / 1e3, t[int(NR * 0.95)] / 1e3, t[NR] / 1e3 }'
grown=$(($(bytes) - start))
echo "store grew by $grown bytes, $(awk "BEGIN { printf \"%.2f\", $grown / $changed }") times the $changed that changed"
said=$("$rwd" -C "$work" du --json | grep -o '"ownBytes":[0-9]*' | head -1 | cut -d: -f2)
there=$(du -sb "$data"/workspaces/*/ | cut -f1)
echo "rwd du says $said, the disk $there: $(awk "BEGIN { printf \"%.1f\", 100 * $said / $there }") %"
"$rwd" -q config set retention.max_bytes $((start + grown / 2)) > /dev/null
"$rwd" -q -C "$work" gc > /dev/null
echo "after gc with a budget of $((start + grown / 2)): $(bytes) bytes; pinned: $("$rwd" -q -C "$work" show first > /dev/null && echo kept || echo GONE)"
"$rwd" -q -C "$work" verify > /dev/null && echo "every point is whole"
