#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where an operation's instructions go, by function: stops the emulated machine again and again and looks where it is.

  profile.py FILE SAMPLES    FILE: profile.sh writes its run's directory there; it ends when FILE is gone
"""
import bisect
import collections
import json
import pathlib
import re
import socket
import sys
import time


class Monitor:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile()
        self.lines.readline()
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode() + b'\n')
        while True:
            answer = json.loads(self.lines.readline())
            if 'return' in answer or 'error' in answer:
                return answer.get('return')

    def where(self):
        """The instruction pointer: in step with the machine only while that stands still."""
        self.ask('stop')
        registers = self.ask('human-monitor-command', **{'command-line': 'info registers'})
        self.ask('cont')
        return int(re.search(r'RIP=([0-9a-f]+)', registers).group(1), 16)


def symbols(path):
    found = []
    for line in path.read_text().splitlines():
        address, kind, name = line.split()[:3]
        if kind in 'tT':
            found.append((int(address, 16), name))
    return sorted(found)


def main():
    if len(sys.argv) != 3:
        sys.exit('usage: profile.py FILE SAMPLES')
    mark, samples = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    while not mark.exists() or not mark.read_text().strip():
        time.sleep(0.1)
    run = pathlib.Path(mark.read_text().strip())
    names = symbols(run / 'out/kallsyms')
    addresses = [a for a, _ in names]
    monitor, seen = Monitor(run / 'qmp'), collections.Counter()
    for _ in range(samples):
        at = monitor.where()
        seen[names[bisect.bisect(addresses, at) - 1][1] if at >> 63 else '(user space)'] += 1
        time.sleep(0.002)
    mark.unlink()
    for name, count in seen.most_common(60):
        print('%5.1f %%  %s' % (100 * count / samples, name))


if __name__ == '__main__':
    main()
