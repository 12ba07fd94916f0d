#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures medge, its peers, TCP and the machine's own limits, in one boot of the lab; command-bench.sh starts it.

  measure.py SET REPETITIONS SECONDS OUT.json [BARE.ko]

In each repetition each of them has its turn, with the ports for itself: librdmacm takes the first device that has the
address. What is written is every value of every repetition: who draws conclusions may see the spread.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

from experiments import experiments
from nodes import ENV, Devices, Failed, NoClock, OutOfTime, run, say
from speeds import MIB, Bare, CpuPerByte, Perftest, Polled, Tcp, write

TRIES = 4
# Of what is drawn only; what has a floor is measured in all repetitions.
TURNS_FULL = 2
# What part of a try it is when perftest gives up before it begins.
CLOCK_TRY = 0.2
# Repetitions in which a peer may hang at a test before it is left out of the others.
HANGS = 2
SIZES = [1, 16, 64, 256, 1024, 4096, 16384, 65536, 1 << 18, MIB, 4 * MIB, 16 * MIB]


def floors():
    """The figures that have a floor."""
    return [write(MIB), write(65536), write(4096), write(4096, '-q', '64'), write(64), write(64, '-l', '32'),
            write(MIB, '-b'), Perftest('ib_read_bw', MIB), Perftest('ib_send_bw', MIB),
            Perftest('ib_write_lat', 4), Perftest('ib_read_lat', 4)]


def compared():
    """Those of them in which peers are asked; the others compare figures of medge's own."""
    return [write(MIB), write(4096), write(64), write(64, '-l', '32'), write(MIB, '-b'),
            Perftest('ib_write_lat', 4), Perftest('ib_read_lat', 4)]


def sweep(tools=('ib_write_bw',), sizes=tuple(SIZES), ways=((),)):
    return [Perftest(tool, size, *way) for tool in tools for size in sizes for way in ways]


def everything():
    return (floors() + sweep() + sweep(('ib_read_bw', 'ib_send_bw'), (64, 4096, 65536, MIB)) +
            sweep(sizes=(4096, 65536, MIB), ways=(('-b',),)) +
            sweep(sizes=(4096,), ways=(('-q', '4'), ('-q', '16'), ('-q', '64'))) +
            sweep(sizes=(65536,), ways=(('-q', '4'), ('-q', '16'))) +
            sweep(('ib_write_lat', 'ib_read_lat', 'ib_send_lat'), (4, 256, 4096, 65536)) + [CpuPerByte()])


def own():
    """What the peers have not."""
    return [Polled(mode, 'ib_write_bw', size, *way) for mode in ('off', 'all') for size in (4096, 65536)
            for way in ((), ('-b',))]


# What each set measures: of RDMA devices uncut, of them with rails that cut, whether TCP and the limits, and how.
SETS = {
    'tiny': (lambda: [write(MIB), write(64), Perftest('ib_write_lat', 4)], lambda: [write(MIB)], 'frames'),
    'floors': (floors, lambda: [write(MIB)], 'frames'),
    'mtu': (lambda: [write(MIB)], lambda: [write(MIB)], ''),
    'full': (everything, lambda: sweep(sizes=(4096, 65536, MIB)), 'frames'),
    'sizes': (lambda: sweep(sizes=(1024, 4096, 16384, 65536, MIB)), lambda: sweep(sizes=(4096, 65536, MIB)), 'frames'),
    'rails': (lambda: [write(65536), write(MIB), write(MIB, '-b')], lambda: [], 'tcp'),
    'shaped': (lambda: [write(MIB)], lambda: [], 'shaped'),
    'lossy': (lambda: [write(65536), write(MIB), Perftest('ib_read_bw', MIB), Perftest('ib_write_lat', 4)],
              lambda: [], 'tcp'),
    # Of each kind its own.
    'papers': (lambda: experiments('medge'), lambda: [], 'memcpy'),
    'latency': (lambda: [Perftest('ib_write_lat', 4), Perftest('ib_read_lat', 4)], lambda: [], ''),
}


def with_tcp_and_limits(limits, bare, uncut):
    out = {}
    if limits and limits != 'memcpy':
        out['tcp'] = [Tcp('one')] + ([Tcp('both')] if uncut else [])
        if uncut and limits == 'frames':
            out['tcp'].append(Tcp('cpu'))
    kinds = {'frames': ['bytes', 'one', 'frame', 'small', 'memcpy'] if uncut else ['bytes', 'one'], 'shaped': ['rails'],
             'memcpy': ['memcpy']}
    if limits in kinds and bare:
        out['bare'] = [Bare(kind, bare) for kind in kinds[limits]]
    return out


def asked(which, peers, cut, bare, turn=0):
    """Who measures what, in the order of their turns."""
    uncut, when_cut, limits = SETS['floors' if which == 'full' and turn >= TURNS_FULL else which]
    shared = when_cut() if cut else uncut()
    if not shared:
        return {}
    theirs = compared() if uncut is floors and not cut else shared
    tests = {peer: shared if peer == 'medge' else theirs for peer in peers}
    if which == 'full' and not cut:
        tests['medge'] = shared + own()
    if which == 'papers':
        tests = {peer: experiments(peer) for peer in peers}
    return {**tests, **with_tcp_and_limits(limits, bare, not cut)}


def cut_rails(yes):
    """A device that takes no superframe: they are cut in front of it."""
    for node in 'ab':
        for rail in range(int(ENV['RAILS'])):
            run('ip', 'netns', 'exec', node, 'ethtool', '-K', 'rail%d' % rail, 'tx-gso-list', 'off' if yes else 'on')


def tell_of_crashes(yes):
    """Has the kernel's log those of programs? Who measures learns of them anyway, and what a peer's program does is no
    complaint about medge: perftest crashes now and then over siw, as it ends."""
    switch = pathlib.Path('/proc/sys/debug/exception-trace')
    if switch.exists():
        switch.write_text('%d\n' % yes)


class Session:
    def __init__(self, peers, repetitions, seconds):
        self.peers, self.repetitions, self.seconds = peers, repetitions, seconds
        self.devices = Devices()
        self.results = {}
        self.failures = []
        self.hung = collections.Counter()

    def one(self, kind, test, cut):
        """@test is measured once more, and tried again when something other than speed was in the way."""
        key = (kind, test.name(), cut)
        if self.hung[key] == HANGS:
            return
        had = self.results.get(key)
        last = had['values'][-1]['value'] if had else None
        # A peer that hangs is not tried again at once; what stands beside them had an accident.
        hangs = kind in self.peers and kind != 'medge'
        tries = 0
        while tries < TRIES:
            tries += 1
            try:
                value = test.measure(self.devices, self.seconds, last)
            except OutOfTime as error:
                problem = str(error)
                if hangs:
                    break
                continue
            except NoClock as error:
                problem = str(error)
                # This takes little, and tells nothing of who is measured.
                tries -= 1 - CLOCK_TRY
                continue
            except (Failed, subprocess.CalledProcessError, ValueError, KeyError) as error:
                problem = str(error)
                continue
            if value['value'] > 0:
                entry = self.results.setdefault(key, {'type': kind, 'test': test.name(), 'unit': test.unit(),
                                                      'cut': cut, 'values': []})
                entry['values'].append(value)
                return
            problem = 'no figure'
        self.hung[key] += hangs
        self.failures.append({'type': kind, 'test': test.name(), 'cut': cut, 'why': problem})
        say('%s %s%s was not measured: %s' % (kind, test.name(), ', cut' if cut else '', problem))

    def round(self, tests, cut):
        """Returns who took how many seconds."""
        took = {}
        for kind, mine in tests.items():
            began = time.monotonic()
            self.devices.use(kind)
            tell_of_crashes(kind == 'medge' or kind not in self.peers)
            for test in {test.name(): test for test in mine}.values():
                self.one(kind, test, cut)
            took[kind] = time.monotonic() - began
        tell_of_crashes(True)
        return took

    def all(self, which, bare):
        for turn in range(self.repetitions):
            for cut in (False, True):
                tests = asked(which, self.peers, cut, bare, turn)
                if not tests:
                    continue
                if SETS[which][1]():
                    cut_rails(cut)
                took = self.round(tests, cut)
                say('repetition %d of %d%s: %s' % (turn + 1, self.repetitions, ', cut' if cut else '',
                                                  ', '.join('%s %.0f s' % each for each in took.items())))
        self.devices.use(ENV['TYPE'])


def verified():
    """Every byte of random traffic, outside of what is timed."""
    program = pathlib.Path(ENV['LAB_BUILD']) / 'tests/verbs/verbs_pattern'
    done = subprocess.run([str(program), '--seed', str(os.getpid()), '--rounds', '10'],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        sys.exit('medge carries wrong data, so its speed is of no interest: ' + done.stdout[-500:])


def main():
    if len(sys.argv) not in (5, 6) or sys.argv[1] not in SETS:
        sys.exit('usage: measure.py %s REPETITIONS SECONDS OUT.json [BARE.ko]' % '|'.join(SETS))
    which, repetitions, seconds, out = sys.argv[1:5]
    peers = ENV.get('BENCH_PEERS', 'medge rxe siw').split()
    verified()
    session = Session(peers, int(repetitions), float(seconds))
    session.all(which, sys.argv[5] if len(sys.argv) == 6 else None)
    where = {name.lower(): ENV.get(name, '') for name in ('RAILS', 'MTU', 'RATE', 'NETEM', 'KERNEL', 'CPUS')}
    pathlib.Path(out).write_text(json.dumps({
        'set': which, 'where': {**where, 'release': os.uname().release}, 'peers': peers,
        'results': list(session.results.values()), 'failures': session.failures}, indent=1))
    ours = [f for f in session.failures if f['type'] == 'medge']
    sys.exit(1 if ours else 0)


if __name__ == '__main__':
    main()
