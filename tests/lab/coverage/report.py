#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which lines the tests went through, from gcov's notes and data in a directory.

    report.py --root SOURCES --why FILE --least PERCENT [--strip N] DIR

Prints a table of the files below SOURCES, and each line that nobody went
through, with the reason that FILE gives for it. Of a line in a header, each
file that includes it is asked. Below SOURCES may be several copies of them, N
directories down, which count as one. FILE has a reason a line:

    FILE-NAME: REGULAR EXPRESSION OF THE LINE'S TEXT: WHY

Exit status 1 if there is less than PERCENT, or a reason for nothing.
"""
import argparse
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def counts_below(directory, root, strip):
    """{file: {line: how often}} of the sources below root; and where to find each."""
    counts, where = collections.defaultdict(dict), {}
    data = sorted(str(p) for p in pathlib.Path(directory).resolve().rglob("*.gcda"))
    if not data:
        sys.exit(f"coverage: nothing ran: no .gcda below {directory}")
    with tempfile.TemporaryDirectory() as to:
        subprocess.run(["gcov", "--json-format", "--hash-filenames", *data], cwd=to, check=True,
                       stdout=subprocess.DEVNULL)
        for name in os.listdir(to):
            with gzip.open(os.path.join(to, name)) as f:
                add_counts(json.load(f), root, strip, counts, where)
    return counts, where


def add_counts(notes, root, strip, counts, where):
    for file in notes["files"]:
        path = os.path.realpath(os.path.join(notes["current_working_directory"], file["file"]))
        if not path.startswith(root + os.sep):
            continue
        name = os.sep.join(os.path.relpath(path, root).split(os.sep)[strip:])
        if name.startswith("cov_"):
            continue
        where[name] = path
        lines = counts[name]
        for line in file["lines"]:
            n = line["line_number"]
            lines[n] = lines.get(n, 0) + line["count"]


class Reasons:
    def __init__(self, name):
        self.reasons, self.used = [], set()
        for number, line in enumerate(open(name), 1):
            if line.strip() and not line.startswith("#"):
                file, text, why = (word.strip() for word in re.split(r": +", line.rstrip("\n"), maxsplit=2))
                self.reasons.append((number, file, re.compile(text), why))

    def of(self, path, text):
        for number, file, expression, why in self.reasons:
            if file == os.path.basename(path) and expression.search(text):
                self.used.add(number)
                return why
        return None

    def unused(self):
        return [number for number, *_ in self.reasons if number not in self.used]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--why", required=True)
    parser.add_argument("--least", type=float, required=True)
    parser.add_argument("--strip", type=int, default=0)
    parser.add_argument("dir")
    args = parser.parse_args()
    root = os.path.realpath(args.root)
    counts, where = counts_below(args.dir, root, args.strip)
    reasons = Reasons(args.why)

    missed, total = [], 0
    for name, lines in sorted(counts.items()):
        text = open(where[name]).read().splitlines()
        none = [n for n, count in sorted(lines.items()) if not count]
        missed += [(name, n, text[n - 1].strip()) for n in none]
        total += len(lines)
        print(f"{name:28} {len(lines):5} lines  {100 * (1 - len(none) / len(lines)):6.1f} %")
    unexplained = 0
    if missed:
        print("nobody went through")
    for name, n, text in missed:
        why = reasons.of(name, text)
        unexplained += why is None
        print(f"  {name}:{n}: {text}\n      {why or 'no test yet'}")
    percent = 100 * (1 - len(missed) / total)
    print(f"coverage: {percent:.1f} % of {total} lines; {len(missed)} missed, of them {unexplained} without a reason")
    for number in reasons.unused():
        print(f"{args.why}:{number}: a reason for nothing")
    sys.exit(percent < args.least or bool(reasons.unused()))


main()
