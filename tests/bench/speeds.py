# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What can be measured. Each has a name and a unit, and measures itself once, of the devices there are then."""
import json
import os
import pathlib
import re
import subprocess

from nodes import ENV, NoClock, Pair, busy_seconds, on, run

MIB = 1 << 20
# perftest is not exact with fewer.
ITERATIONS_LEAST = 300
ITERATIONS_FEW = 5
ITERATIONS_MOST = 2_000_000
# Of bare frames in front of a rail with a rate: 3 ms at 10 Gbit/s.
SUPERFRAMES_QUEUED = 64
# Writes for each completion that perftest asks for, unless told.
CQ_MODERATION = 100
LATENCIES = ['min', 'max', 'value', 'mean', 'deviation', 'p99', 'p99.9']


class Perftest:
    """One of perftest's programs, with one set of arguments: of perftest with the series in perftest-patches, which
    finds the CPU's clock where the distribution's gives up, as often as ten times in a row on a busy machine."""
    def __init__(self, tool, size, *args):
        self.tool, self.size, self.args = tool, size, args
        self.lat = tool.endswith('_lat')
        self.list = int(args[args.index('-l') + 1]) if '-l' in args else 1
        self.qps = int(args[args.index('-q') + 1]) if '-q' in args else 1
        # Of a value.
        self.fields = LATENCIES if self.lat else ['value']

    def name(self):
        return ' '.join([self.tool[3:], str(self.size), *self.args])

    def once(self, devices, iterations):
        Pair.port += 1
        way = ['-F', '-p', Pair.port, '-s', self.size, '-n', iterations, *self.args]
        if not self.lat:
            way.append('-N')            # or to find the peak takes longer than the run, with many queue pairs
        if devices.type == 'siw':
            way.append('-R')
        tool = pathlib.Path(ENV['LAB_BUILD']).parents[1] / 'perftest' / self.tool
        server, client = (on(node, cpu, tool, '-d', devices.type + '_' + node, '-x', devices.gid[node], *way, *more)
                          for node, cpu, more in (('b', -1 % os.cpu_count(), []), ('a', 0, [devices.ip['b']])))
        out = Pair(server, client).run(Pair.port, devices.type == 'siw')
        rows = re.findall(r'^ *%d +\d+ +(.*\d)\s*$' % self.size, out, re.M)
        if not rows or 'Correlation' in out:
            raise NoClock('perftest could not measure the clock')
        values = [float(v) for v in rows[-1].split()]
        if self.lat:
            return dict(zip(LATENCIES, values))
        if self.size < 1024:
            return {'value': values[2] * 1e6}
        return {'value': values[1] * MIB / 1e6}

    def unit(self):
        return 'us' if self.lat else 'messages/s' if self.size < 1024 else 'MB/s'

    def iterations(self, seconds, last):
        """So many that they take that long, by what was measured last or by a guess."""
        if self.lat:
            per = (last or 40 + self.size / 100) * 1e-6 * 2
        elif self.size < 1024:
            per = 1 / (last or 40e3)
        else:
            per = self.size / ((last or 100) * 1e6)
        least = max(ITERATIONS_LEAST // self.qps, 1)
        if per * least > 4 * seconds:
            # Of long messages, or of who is slow, few are much; with fewer it refuses to measure.
            least = ITERATIONS_FEW
        n = int(min(max(seconds / per / self.qps, least), ITERATIONS_MOST))
        # With several QPs, some of its releases wait for ever for completions of a part of what one asks for.
        whole = CQ_MODERATION if self.qps > 1 else self.list
        return -(-n // whole) * whole

    def measure(self, devices, seconds, last):
        tried = self.iterations(seconds, last)
        got = self.once(devices, tried)
        wanted = self.iterations(seconds, got['value'])
        # Of who is much faster than was guessed, that was little more than the beginning.
        return got if last or wanted < 2 * tried else self.once(devices, wanted)


class Polled(Perftest):
    """So with the device's sends looked for by a thread, or told by interrupts and system calls."""
    def __init__(self, mode, *args):
        super().__init__(*args)
        self.mode = mode

    def name(self):
        return super().name() + ' polling=' + self.mode

    @staticmethod
    def choose(mode):
        for path in pathlib.Path('/sys/class/infiniband').glob('medge_?/polling'):
            path.write_text(mode)

    def measure(self, devices, seconds, last):
        self.choose(self.mode)
        try:
            return super().measure(devices, seconds, last)
        finally:
            self.choose('auto')


class CpuPerByte:
    """CPU time of both nodes for each MB sent, with both asleep until there is a completion (which perftest does for
    sends alone): of a long run less a short one, so that what it takes to begin and end is none of it."""
    def __init__(self, size=MIB):
        self.test = Perftest('ib_send_bw', size, '-e')

    def name(self):
        return 'cpu send %d' % self.test.size

    def unit(self):
        return 'us/MB'

    def measure(self, devices, seconds, _last):
        speed = self.test.measure(devices, seconds / 4, None)['value']
        took = []
        runs = [self.test.iterations(seconds / 3, speed), 4 * self.test.iterations(seconds / 3, speed)]
        for n in runs:
            began = busy_seconds()
            self.test.once(devices, n)
            took.append(busy_seconds() - began)
        return {'value': (took[1] - took[0]) * 1e6 / ((runs[1] - runs[0]) * self.test.size / 1e6)}


class Tcp:
    """One TCP stream, or two ways at a time."""
    def __init__(self, what):
        self.what = what

    def name(self):
        return {'one': 'write_bw 1048576', 'both': 'write_bw 1048576 -b', 'cpu': 'cpu send 1048576'}[self.what]

    def unit(self):
        return 'us/MB' if self.what == 'cpu' else 'MB/s'

    def measure(self, devices, _seconds, _last):
        Pair.port += 1
        server = on('b', -1 % os.cpu_count(), 'iperf3', '-s', '-1', '-p', Pair.port)
        client = on('a', 0, 'iperf3', '-c', devices.ip['b'], '-p', Pair.port, '-J', '-t', 1, '-l', MIB)
        if self.what == 'both':
            client.append('--bidir')
        began = busy_seconds()
        result = json.loads(Pair(server, client).run(Pair.port))['end']
        took = busy_seconds() - began
        ways = ['sum_received'] + (['sum_received_bidir_reverse'] if self.what == 'both' else [])
        if self.what == 'cpu':
            return {'value': took * 1e6 / (result['sum_received']['bytes'] / 1e6)}
        return {'value': sum(result[way]['bits_per_second'] for way in ways) / 8e6}


class Bare:
    """The machine's limit, by a kernel module: frames with one copy and no protocol; memcpy; small frames; and
    over all rails, that have a rate. Of those that take two CPUs, how far these are from each other; or 0."""
    fields = ['value', 'line_ns']

    def __init__(self, what, module):
        self.what, self.module = what, module

    def name(self):
        return {'bytes': 'write_bw 1048576', 'rails': 'write_bw 1048576', 'one': 'write_bw 1048576, one CPU',
                'frame': 'one skb a frame', 'small': 'write_bw 64', 'memcpy': 'memcpy'}[self.what]

    def unit(self):
        return 'messages/s' if self.what == 'small' else 'MB/s'

    def measure(self, _devices, seconds, _last):
        # As many bytes as medge has in a frame, and as many of them as fit in a superframe.
        seg = 64 if self.what == 'small' else (int(ENV['MTU']) - 64) // 8 * 8
        frames = 1 if self.what in ('small', 'frame') else 65000 // seg
        cpus = 1 if self.what in ('one', 'memcpy') else min(2, os.cpu_count())
        rails = range(int(ENV['RAILS']) if self.what == 'rails' else 1)
        subprocess.run(['rmmod', 'bare'], check=False, capture_output=True)
        run('ip', 'netns', 'exec', 'a', 'insmod', self.module, 'netdev=' + ','.join('rail%d' % r for r in rails),
            'seg=%d' % seg, 'frames=%d' % frames, 'queue=%d' % (SUPERFRAMES_QUEUED if self.what == 'rails' else 0),
            'cpus=%d' % cpus, 'ms=%d' % (seconds * 1000))
        got = {f.name: f.read_text().strip() for f in pathlib.Path('/sys/module/bare/parameters').iterdir()}
        run('rmmod', 'bare')
        return {'value': self.rate(got), 'line_ns': int(got['line_ns'])}

    def rate(self, got):
        if self.what == 'memcpy':
            return int(got['memcpy_bytes']) / int(got['memcpy_ns']) * 1000
        if self.what == 'small':
            return int(got['packets']) / int(got['ns']) * 1e9
        return int(got['bytes']) / int(got['ns']) * 1000


def write(size, *args):
    return Perftest('ib_write_bw', size, *args)
