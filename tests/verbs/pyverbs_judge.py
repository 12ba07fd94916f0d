# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Is what pyverbs_run.py wrote what is expected of medge?

    python3 pyverbs_judge.py RESULTS SKIPS RELEASE

SKIPS has a line for each test that medge skips: its name, in which * stands for
anything, and the reason. In front of the name may stand a release and a colon,
if it is skipped only there. A failure, an error, a skip that is not there, and a
test there that is not skipped are told, and end it with status 1.
"""
import fnmatch
import sys


def read_skips(path, release):
    names = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split("#", 1)[0].split(None, 1)
            if not words:
                continue
            where, _, name = words[0].rpartition(":")
            if where and not release.startswith(where):
                continue
            names.append(name)
    return names


def main():
    results, skips, release = sys.argv[1:]
    patterns = read_skips(skips, release)
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
