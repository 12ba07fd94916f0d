#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where an operation's instructions go, by function: each that the emulated machine executes for a while is recorded.

  profile.py FILE    FILE: profile.sh writes its run's directory there; it ends when FILE is gone
"""
import bisect
import collections
import json
import pathlib
import re
import socket
import sys
import time


TRACE_BYTES = 100 << 20
USER = '(user space)'
# Called once for each operation: its event is read.
EACH = 'ib_uverbs_comp_event_read'
MOST, CALLERS = 120, 4


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

    def tell(self, line):
        return self.ask('human-monitor-command', **{'command-line': line})


def symbols(path):
    found = []
    for line in path.read_text().splitlines():
        address, kind, name = line.split()[:3]
        if kind in 'tT':
            found.append((int(address, 16), name))
    return sorted(found)


class Profile:
    """What is executed from one operation's end to another's, by function, and who calls it."""

    def __init__(self, names):
        self.names = names
        self.addresses = [a for a, _ in names]
        self.entries = dict(names)
        self.ops, self.last = -1, USER
        self.seen, self.calls = collections.Counter(), collections.Counter()
        self.begin()

    def begin(self):
        self.seen_now, self.calls_now = collections.Counter(), collections.Counter()

    def add(self, at):
        name = self.names[bisect.bisect(self.addresses, at) - 1][1] if at >> 63 else USER
        if at in self.entries:
            if name == EACH:
                self.end()
            self.calls_now[self.last, name] += 1
        self.seen_now[name] += 1
        self.last = name

    def end(self):
        if self.ops >= 0:
            self.seen += self.seen_now
            self.calls += self.calls_now
        self.ops += 1
        self.begin()

    def show(self):
        if self.ops < 1:
            sys.exit('no operation ended while it was looked at')
        total = sum(self.seen.values())
        print('%d instructions each of %d times, by function, with its callers' % (total / self.ops, self.ops))
        for name, count in self.seen.most_common(MOST):
            callers = sorted((-n, caller) for (caller, callee), n in self.calls.items() if callee == name)
            print('%7d %5.1f %%  %-32s %s' % (count / self.ops, 100 * count / total, name, '  '.join(
                '%.4g %s' % (-n / self.ops, caller) for n, caller in callers[:CALLERS])))


def record(monitor, trace):
    """Addresses of instructions, in the order of their execution."""
    monitor.tell('logfile %s' % trace)
    monitor.tell('singlestep on')
    monitor.tell('log exec,nochain')
    while not trace.exists() or trace.stat().st_size < TRACE_BYTES:
        time.sleep(0.01)
    monitor.tell('log none')
    monitor.tell('singlestep off')
    with trace.open(errors='replace') as lines:
        for line in lines:
            found = re.match(r'Trace \d+: \S+ \[\w+/(\w+)/', line)
            if found:
                yield int(found.group(1), 16)


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: profile.py FILE')
    mark = pathlib.Path(sys.argv[1])
    while not mark.exists() or not mark.read_text().strip():
        time.sleep(0.1)
    run = pathlib.Path(mark.read_text().strip())
    names = symbols(run / 'out/kallsyms')
    profile = Profile(names)
    for at in record(Monitor(run / 'qmp'), run / 'trace'):
        profile.add(at)
    (run / 'trace').unlink()
    mark.unlink()
    profile.show()


if __name__ == '__main__':
    main()
