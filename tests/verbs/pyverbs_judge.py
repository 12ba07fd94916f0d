# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is what pyverbs_run.py wrote what is expected of medge?

    python3 pyverbs_judge.py RESULTS SKIPS

SKIPS has a line for each test that medge skips: its name, in which * stands for
anything, and the reason. A failure, an error, a skip that is not there, and a
test there that is not skipped are told, and end it with status 1.
"""
import fnmatch
import sys


def read_skips(path):
    with open(path, encoding="utf-8") as file:
        lines = (line.split("#", 1)[0].split(None, 1) for line in file)
        return [words[0] for words in lines if words]


def main():
    results, skips = sys.argv[1:]
    patterns = read_skips(skips)
    bad = 0
    ended = False
    with open(results, encoding="utf-8") as file:
        for line in file:
            status, _, rest = line.rstrip("\n").partition("\t")
            name, _, reason = rest.partition("\t")
            if status == "end":
                ended = True
                continue
            listed = any(fnmatch.fnmatchcase(name, p) for p in patterns)
            if status == "skip" and not listed:
                print(f"  new skip: {name}: {reason}")
            elif status == "pass" and listed:
                print(f"  listed as skipped, but passes: {name}")
            elif status in ("fail", "error"):
                print(f"  {status}: {name}")
            else:
                continue
            bad += 1
    if not ended:
        print("  the suite did not come to its end")
    return bad > 0 or not ended


sys.exit(main())
