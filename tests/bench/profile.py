#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Where an operation's instructions go: each that the emulated machine executes for a while is recorded.

  profile.py FILE                          by function; FILE: profile.sh writes its run's directory there, and goes on
                                           when it is gone
  profile.py FILE OUT.json OPERATION...    of each in its turn, by the parts of parts.py
"""
import bisect
import collections
import json
import pathlib
import re
import socket
import sys
import time

import parts

TRACE_BYTES = 100 << 20
# That is a millisecond of the machine's, which may be another program's from end to end.
LOOKS = 5
USER = '(user space)'
# Called once for each operation: its event is read.
EACH = 'ib_uverbs_comp_event_read'
MOST, CALLERS, FEW = 120, 4, 8


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

    def close(self):
        self.lines.close()
        self.socket.close()

    def tell(self, line):
        return self.ask('human-monitor-command', **{'command-line': line})


def symbols(path):
    """Address, name and module of each function."""
    found = []
    for line in path.read_text().splitlines():
        address, kind, name, *module = line.split()
        if kind in 'tTwW':
            found.append((int(address, 16), name, module[0][1:-1] if module else ''))
    return sorted(found)


class Profile:
    """What is executed from one operation's end to another's, by function and part, and who calls it."""

    def __init__(self, functions):
        self.functions = functions
        self.addresses = [address for address, _, _ in functions]
        self.ops, self.last = -1, USER
        self.stack = []     # of calls: a function's index, and the part of what it does
        self.seen, self.calls = collections.Counter(), collections.Counter()
        self.begin()

    def begin(self):
        self.seen_now, self.calls_now = collections.Counter(), collections.Counter()

    def follow(self, index, begins):
        """Has it been called, or is it returned to? Another task's functions are not on the stack."""
        if not begins:
            while self.stack and self.stack[-1][0] != index:
                self.stack.pop()
        if begins or not self.stack:
            within = self.stack[-1][1] if self.stack else 'other'
            self.stack.append((index, parts.part_of(*self.functions[index][1:], within)))
        return self.stack[-1][1]

    def add(self, at):
        if not at >> 63:
            name, part = USER, 'user'
            self.stack.clear()
        else:
            index = bisect.bisect(self.addresses, at) - 1
            name, begins = self.functions[index][1], at == self.addresses[index]
            part = self.follow(index, begins)
            if begins:
                if name == EACH:
                    self.end()
                self.calls_now[self.last, name] += 1
        self.seen_now[name, part] += 1
        self.last = name

    def end(self):
        if self.ops >= 0:
            self.seen += self.seen_now
            self.calls += self.calls_now
        self.ops += 1
        self.begin()

    def by_function(self):
        out = collections.Counter()
        for (name, _), count in self.seen.items():
            out[name] += count
        return out

    def by_part(self):
        """Instructions of each operation; and of which functions most are."""
        out = {}
        for part in parts.PARTS:
            mine = collections.Counter({name: n / self.ops for (name, of), n in self.seen.items() if of == part})
            out[part] = {'instructions': sum(mine.values()), 'most': mine.most_common(FEW)}
        return {'times': self.ops, 'parts': out}

    def show(self):
        total = sum(self.seen.values())
        print('%d instructions each of %d times, by function, with its callers' % (total / self.ops, self.ops))
        for name, count in self.by_function().most_common(MOST):
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


def look(mark):
    """The profile of what profile.sh runs now."""
    while not mark.exists() or not mark.read_text().strip():
        time.sleep(0.1)
    run = pathlib.Path(mark.read_text().strip())
    functions = symbols(run / 'out/kallsyms')
    monitor = Monitor(run / 'qmp')
    for _ in range(LOOKS):
        profile = Profile(functions)
        for at in record(monitor, run / 'trace'):
            profile.add(at)
        (run / 'trace').unlink()
        if profile.ops > 0:
            break
    else:
        sys.exit('no operation ended while it was looked at, %d times' % LOOKS)
    monitor.close()
    mark.unlink()
    return profile


def main():
    if len(sys.argv) not in (2, *range(4, 20)):
        sys.exit('usage: profile.py FILE [OUT.json OPERATION...]')
    mark, *rest = (pathlib.Path(word) for word in sys.argv[1:])
    if not rest:
        look(mark).show()
        return
    found = {str(operation): look(mark).by_part() for operation in rest[1:]}
    rest[0].write_text(json.dumps({'parts': parts.PARTS, 'operations': found}, indent=1))


if __name__ == '__main__':
    main()
