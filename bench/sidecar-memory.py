#!/usr/bin/env python3
"""A sidecar over many turns: its own memory, threads and descriptors, once every so many turns.

    bench/sidecar-memory.py [--rwd target/release/rwd] [--turns 4000] [--restores-every 10]

One session, 400 files in 20 directories, five of them written in each turn; a start and an end of each turn, and now and
then a restore of everything. Prints kilobytes of RssAnon: what is mapped from files is shared with everybody.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
import time

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("--rwd", default="target/release/rwd")
options.add_argument("--turns", type=int, default=4000)
options.add_argument("--restores-every", type=int, default=10, help="0: never")
options = options.parse_args()

top = tempfile.TemporaryDirectory(prefix="rwd-memory-")
work = os.path.join(top.name, "work")
random.seed(1)


def write(n, text):
    place = os.path.join(work, f"d{n % 20}")
    os.makedirs(place, exist_ok=True)
    with open(os.path.join(place, f"f{n}"), "w") as file:
        file.write(text)


for n in range(400):
    write(n, f"begin {n}\n" * 50)
environment = dict(os.environ, HOME=top.name, XDG_DATA_HOME=os.path.join(top.name, "data"))
command = [os.path.abspath(options.rwd), "--data-dir", os.path.join(top.name, "data"), "sidecar"]
sidecar = subprocess.Popen(
    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=top.name, env=environment, text=True, bufsize=1
)
asked = 0


def ask(method, **params):
    """Sends a request; gives its answer. Notices in between are dropped."""
    global asked
    asked += 1
    sidecar.stdin.write(json.dumps({"jsonrpc": "2.0", "id": asked, "method": method, "params": params}) + "\n")
    while True:
        message = json.loads(sidecar.stdout.readline())
        if message.get("id") == asked and "method" not in message:
            return message


def must(method, **params):
    answer = ask(method, **params)
    if "error" in answer:
        raise SystemExit(f"{method}: {answer['error']}")


def look(turn):
    with open(f"/proc/{sidecar.pid}/status") as file:
        status = dict(line.split(":", 1) for line in file.read().splitlines())
    descriptors = len(os.listdir(f"/proc/{sidecar.pid}/fd"))
    own, threads = status["RssAnon"].split()[0], status["Threads"].strip()
    print(f"{turn:6} turns {own:>7} kB {threads:>3} threads {descriptors:>4} descriptors", end="")
    print(f" {restored} restores, {refused} refused, {time.time() - begun:.0f} s", flush=True)


restored = refused = 0
begun = time.time()
must("hello", protocol=1, client={"name": "memory"})
must("session.open", session="s1", harness="other", roots=[work], log="none")
look(0)
for turn in range(1, options.turns + 1):
    must("turn.begin", session="s1", turn=turn)
    for _ in range(5):
        write(random.randrange(400), f"turn {turn} {random.random()}\n" * 60)
    must("turn.end", session="s1", turn=turn, reason="completed")
    if options.restores_every and turn % options.restores_every == 0 and turn > 3:
        policy = {"drift": "overwrite", "exact": True, "withOthers": True}
        answer = ask("restore", session="s1", target=f"t{turn - 3}^", policy=policy, scope="files", confirmed=True)
        restored += "result" in answer
        refused += "error" in answer
    if turn in (50, 100, 200, 400, 800) or turn % 500 == 0:
        look(turn)
ask("shutdown")
sidecar.stdin.close()
sidecar.wait()
