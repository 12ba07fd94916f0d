# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What papers on such devices measured, done here; papers.py draws it beside what they found.

By programs that have both ends and try what they compare in turns: perftest's would take ten times as long.
"""
import os
import pathlib
import re

from nodes import program, run

MIB = 1 << 20
# Of the computation's time by the transfer's, as overlap.c has them.
PARTS = ['0', '0.25', '0.5', '0.75', '1', '2', '4']
OVERLAPPED = [4096, 131072]
UNITS = [8192, MIB]
REORDERED = [0, 1, 5, 25]
LOCAL = [4096, 65536, MIB, 4 * MIB]
# As injection.c has them.
INJECTED = [8, 64, 256, 512, 1024]
# As offload.c measures them; and of writes, with the engine from so many bytes of a frame on.
ENGINE = [1024, 2048, 4096, 8192, 16384, 32768, 65536]
OFFLOADED = [65536, MIB, 4 * MIB]
OFFLOAD_LEAST = 4096
INLINE_MOST = {'medge': 1024, 'rxe': 512, 'siw': 80}


class Overlap:
    """Writes with a computation before each."""
    fields = ['value'] + ['%s %s' % (what, part) for part in PARTS for what in ('kept', 'overlapped')]

    def __init__(self, size):
        self.size = size

    def name(self):
        return 'overlap %d' % self.size

    def unit(self):
        return 'MB/s'

    def measure(self, devices, seconds, _last):
        rows = [line.split() for line in program(devices, 'overlap', self.size, int(seconds * 3000)).splitlines()]
        value = {'value': float(rows[0][1])}
        for part, speed, overlapped in rows:
            value['kept ' + part] = 100 * float(speed) / value['value']
            value['overlapped ' + part] = 100 * float(overlapped)
        return value


class IsoSurface:
    """A pipeline of a reader and the extraction of a surface."""
    fields = ['value', 'alone']

    def __init__(self, unit):
        self.size = unit

    def name(self):
        return 'isosurface %d' % self.size

    def unit(self):
        return 'ms'

    def measure(self, devices, _seconds, _last):
        pipeline, alone, _triangles = program(devices, 'isosurface', self.size).split()
        return {'value': float(pipeline), 'alone': float(alone)}


def bandwidth(devices, size, seconds, alone=False):
    """Of overlap.c's writes, without a computation."""
    return {'value': float(program(devices, 'overlap', size, int(seconds * 1000), 1, alone=alone).split()[1])}


class Reordered:
    """With so many of the frames overtaking those of the last 200 us."""
    def __init__(self, percent):
        self.percent = percent

    def name(self):
        return 'reordered %d' % self.percent

    def unit(self):
        return 'MB/s'

    def measure(self, devices, seconds, _last):
        # netem would reorder whole superframes, and TCP's: tbf cuts what is longer than its burst, with a rate that limits
        # nothing.
        burst = int(os.environ['MTU']) + 14
        reorder = ['reorder', '%d%%' % self.percent] if self.percent else []
        try:
            for node in 'ab':
                tc = ['tc', '-n', node, 'qdisc', 'replace', 'dev', 'rail0']
                run(*tc, 'root', 'handle', '1:', 'tbf', 'rate', '1tbit', 'burst', burst, 'limit', 100 * MIB)
                run(*tc, 'parent', '1:1', 'handle', '2:', 'netem', 'limit', 100000, 'delay', '200us', *reorder)
            return bandwidth(devices, 65536, seconds)
        finally:
            for node in 'ab':
                run('tc', '-n', node, 'qdisc', 'replace', 'dev', 'rail0', 'root', 'noqueue')


class Local:
    """Both ends on one device."""
    def __init__(self, size, how=''):
        self.size, self.how = size, how

    def name(self):
        return ' '.join(['local', str(self.size)] + [self.how] * bool(self.how))

    def unit(self):
        return 'MB/s'

    def choose(self, how):
        if self.how:
            pathlib.Path('/sys/class/infiniband/medge_a/loopback').write_text(how)

    def measure(self, devices, seconds, _last):
        self.choose(self.how)
        try:
            return bandwidth(devices, self.size, seconds, alone=True)
        finally:
            self.choose('copy')


class Injection:
    """Small writes whose data the kernel reads in the program's memory, or the program copies into the ring."""
    fields = ['value'] + ['%s %d' % (who, size) for size in INJECTED for who in ('kernel', 'program')]

    def name(self):
        return 'injection'

    def unit(self):
        return 'messages/s'

    def measure(self, devices, seconds, _last):
        value = {}
        for line in program(devices, 'injection', INLINE_MOST[devices.type], int(seconds * 3000)).splitlines():
            size, kernel, own = line.split()
            value['kernel ' + size] = float(kernel)
            value['program ' + size] = float(own)
        return {'value': value['kernel 64'], **value}


def offload(words):
    """Whose copies an engine makes, of both devices: of the tests' engine in software."""
    for node in 'ab':
        pathlib.Path('/sys/class/infiniband/medge_%s/offload' % node).write_text(words)


def engine():
    """The name of the engine's first channel, which is there from here on."""
    if not pathlib.Path('/sys/module/soft_dma').exists():
        run('insmod', os.environ['BENCH_ENGINE'])
    return sorted(pathlib.Path('/sys/class/dma').glob('dma*chan*'))[0].name


class Engine:
    """What a copy takes, by the CPU and by an engine, as the module finds its threshold."""
    fields = ['value'] + ['%s %d' % (who, size) for size in ENGINE for who in ('cpu', 'handed', 'engine')]

    def name(self):
        return 'engine'

    def unit(self):
        return 'ns'

    def measure(self, _devices, _seconds, _last):
        tracing = pathlib.Path('/sys/kernel/tracing')
        if not (tracing / 'trace').exists():
            run('mount', '-t', 'tracefs', 'none', tracing)
        (tracing / 'trace').write_text('')
        (tracing / 'events/medge/medge_engine/enable').write_text('1')
        try:
            pathlib.Path('/sys/class/infiniband/medge_a/offload').write_text(engine())
        finally:
            (tracing / 'events/medge/medge_engine/enable').write_text('0')
            offload('off')
        value = {}
        for size, *took in re.findall(r'medge_engine: .* len (\d+) cpu_ns (\d+) handed_ns (\d+) engine_ns (\d+)',
                                      (tracing / 'trace').read_text()):
            value.update({'%s %s' % (who, size): float(ns) for who, ns in zip(('cpu', 'handed', 'engine'), took)})
        return {'value': value['engine 65536'], **value}


class Offloaded:
    """Writes whose copies the CPU makes, or the engine."""
    def __init__(self, size, who):
        self.size, self.who = size, who

    def name(self):
        return 'copied by the %s %d' % (self.who, self.size)

    def unit(self):
        return 'MB/s'

    def measure(self, devices, seconds, _last):
        if self.who == 'engine':
            engine()
            offload('auto %d' % OFFLOAD_LEAST)
        try:
            return bandwidth(devices, self.size, seconds)
        finally:
            offload('off')


def offloads():
    return [Engine()] + [Offloaded(size, who) for size in OFFLOADED for who in ('cpu', 'engine')]


def experiments(kind):
    """All of them, of a kind of device."""
    ways = ['copy', 'frames'] if kind == 'medge' else ['']
    return ([Overlap(size) for size in OVERLAPPED] + [IsoSurface(unit) for unit in UNITS] +
            [Reordered(percent) for percent in REORDERED] + [Local(size, how) for size in LOCAL for how in ways] +
            [Injection()] + (offloads() if kind == 'medge' else []))
