#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How long were frames on their way, or lost, before they went by another rail?

Reads what the tracepoints saw around cuts of rail1 by verbs_gap. From the instant at
which the kernel says that the sender's port is down (or the other's, of which the sender
is told, if that is all there is), or else from that at which a frame was sent, to that at
which it is sent again by another rail: the worst of each cut. That is the driver's own
doing, without what the kernel needs from the one port to the other, and without what a
program waits besides.

  gap_moved.py TRACE LIMIT_US

Of many, the median is to be below the limit, of a few the least: a guest's CPUs are taken
away for milliseconds, as verbs_gap says, and so are both ends' together.
"""
import re
import sys

CUT = 1  # rail1
APART = 0.5  # seconds without an event are between two cuts
MANY = 50
EVENT = re.compile(r' ([\d.]+): medge_(send|rail): (.*)')
SEND = re.compile(r'(\S+) qp (\d+) rail (\d+) (\S+)( again)? psn (\d+)\+(\d+)')
DOWN = re.compile(r'(\S+) rail (\d+) \S+ down')


class Cut:
    def __init__(self):
        self.down = {}  # device: when
        self.sent = {}  # (device, qp, psn): when and where last
        self.moved = []  # seconds

    def since(self, device):
        """When it could be known that the rail is down."""
        return self.down.get(device, min(self.down.values(), default=0))

    def send(self, when, device, qp, rail, opcode, again, psn, count):
        if opcode == 'ack':
            return
        for number in range(int(psn), int(psn) + int(count)):
            key = device, qp, number
            before, was = self.sent.get(key, (None, None))
            if again and was == CUT and int(rail) != CUT:
                self.moved.append(when - max(before, self.since(device)))
            self.sent[key] = when, int(rail)

    def see(self, when, kind, text):
        if kind == 'send':
            if match := SEND.match(text):
                self.send(when, *match.groups())
        elif (match := DOWN.match(text)) and int(match[2]) == CUT:
            self.down.setdefault(match[1], when)


def read(path):
    cuts, last = [], None
    with open(path, encoding='ascii', errors='replace') as trace:
        for line in trace:
            if not (match := EVENT.search(line)):
                continue
            when = float(match[1])
            if last is None or when - last > APART:
                cuts.append(Cut())
            last = when
            cuts[-1].see(when, match[2], match[3])
    return cuts


def main():
    path, limit = sys.argv[1], int(sys.argv[2])
    cuts = read(path)
    worst = sorted(max(cut.moved) * 1e6 for cut in cuts if cut.moved)
    frames = sum(len(cut.moved) for cut in cuts)
    print(f'moved {frames:10d} frames in {len(worst)} of {len(cuts)} cuts', end='')
    if worst:
        p50, p90, p99 = (worst[(len(worst) * p + 99) // 100 - 1] for p in (50, 90, 99))
        print(f': p50 {p50:6.0f} us  p90 {p90:6.0f} us  p99 {p99:6.0f} us  max {worst[-1]:6.0f} us')
        if (p50 if len(worst) >= MANY else worst[0]) > limit:
            print(f'FAIL: more than {limit} us')
            return 1
    else:
        print()
    return 0


sys.exit(main())
