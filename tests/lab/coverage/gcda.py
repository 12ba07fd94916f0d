#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What cov_first.c wrote, of several boots, summed up into the .gcda files that gcov reads.

    gcda.py FILE...
"""
import collections
import struct
import sys

MAGIC, FUNCTION, COUNTERS = 0x67636461, 0x01000000, 0x01A10000


def read(names):
    """{(file name, header): {function: [counter, ...]}}"""
    objects = collections.defaultdict(dict)
    for name in names:
        functions = None
        for line in open(name):
            words = line.split()
            if words[0] == "object":
                functions = objects[words[4], tuple(int(w) for w in words[1:4])]
            elif words[0] == "function":
                values = functions.setdefault(tuple(int(w) for w in words[1:]), [])
                at = 0
            else:
                if at == len(values):
                    values.append(0)
                values[at] += int(words[0])
                at += 1
    return objects


def write(name, header, functions):
    version, stamp, checksum = header
    with open(name, "wb") as f:
        f.write(struct.pack("<4I", MAGIC, version, stamp, checksum))
        for ids, values in functions.items():
            f.write(struct.pack("<5I", FUNCTION, 12, *ids))
            if values:
                f.write(struct.pack(f"<2I{len(values)}q", COUNTERS, 8 * len(values), *values))


for (file, head), functions_of_it in read(sys.argv[1:]).items():
    write(file, head, functions_of_it)
