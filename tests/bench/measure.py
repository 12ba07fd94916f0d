#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures medge, its peers, TCP and the machine's own limits, in one boot of the lab; command-bench.sh starts it.

  measure.py SET REPETITIONS SECONDS OUT.json [BARE.ko]

In each repetition each of them has its turn, with the ports for itself: librdmacm takes the first device that has the
address. What is written is every value of every repetition: who draws conclusions may see the spread.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ENV = os.environ
# Seconds a program may take: peers on bad rails may hang.
TOOL_LIMIT = 20
TRIES = 4
# What part of a try it is when perftest gives up before it begins.
CLOCK_TRY = 0.2
MIB = 1 << 20
# perftest is not exact with fewer.
ITERATIONS_LEAST = 300
ITERATIONS_FEW = 5
ITERATIONS_MOST = 2_000_000
# Of bare frames in front of a rail with a rate: 3 ms at 10 Gbit/s.
SUPERFRAMES_QUEUED = 64
# Writes for each completion that perftest asks for, unless told.
CQ_MODERATION = 100
SIZES = [1, 16, 64, 256, 1024, 4096, 16384, 65536, 1 << 18, MIB, 4 * MIB, 16 * MIB]


class Failed(Exception):
    pass


class OutOfTime(Failed):
    pass


class NoClock(Failed):
    """perftest could not measure the CPU's, for what else the machine was doing."""


def say(text):
    print('  ' + text, flush=True)


def run(*words):
    return subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout


def on(node, cpu, *words):
    return ['ip', 'netns', 'exec', node, 'taskset', '-c', str(cpu), *map(str, words)]


def busy_seconds():
    """CPU time that all CPUs spent on anything, since the boot."""
    user, nice, system, _idle, _iowait, irq, softirq = map(
        int, pathlib.Path('/proc/stat').read_text().split('\n')[0].split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf('SC_CLK_TCK')


class Devices:
    """One type's at a time, one on each node."""
    def __init__(self):
        self.type = ENV['TYPE']
        self.gid = {'a': ENV['GID_A'], 'b': ENV['GID_B']}
        self.ip = {'a': ENV['IP_A'], 'b': ENV['IP_B']}

    def use(self, kind):
        if kind in (self.type, 'tcp', 'bare'):
            return
        for node in 'ab':
            run('rdma', 'link', 'delete', '%s_%s' % (self.type, node))
        self.type = kind
        for node in 'ab':
            run('ip', 'netns', 'exec', node, 'rdma', 'link', 'add', '%s_%s' % (kind, node),
                'type', kind, 'netdev', ENV['NETDEV_' + node.upper()])
            self.gid[node] = self.gid_index(node)

    def gid_index(self, node):
        """That of the RoCE v2 GID that holds the IPv4 address; iWARP has but one."""
        if self.type == 'siw':
            return 0
        port = pathlib.Path('/sys/class/infiniband/%s_%s/ports/1' % (self.type, node))
        want = '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' % tuple(map(int, self.ip[node].split('.')))
        for _ in range(100):
            for index in range(16):
                try:
                    if ((port / 'gids' / str(index)).read_text().strip() == want and
                            'v2' in (port / 'gid_attrs/types' / str(index)).read_text() and
                            'ACTIVE' in (port / 'state').read_text()):
                        return index
                except OSError:
                    pass
            time.sleep(0.05)
        raise Failed('%s_%s has no GID' % (self.type, node))


class Pair:
    """A program's two ends: the server on b and the last CPU, the client on a and the first."""
    port = 20000

    def __init__(self, server, client):
        self.server, self.client = server, client

    @staticmethod
    def listens(process, port):
        """Its node has a socket that listens: seen without a process, which costs time."""
        want = re.compile(r':%04X [0-9A-F]+:0000 0A ' % port)
        for _ in range(2000):
            if process.poll() is not None:
                return
            for table in ('tcp', 'tcp6'):
                try:
                    if want.search(pathlib.Path('/proc/%d/net/%s' % (process.pid, table)).read_text()):
                        return
                except OSError:
                    pass
            time.sleep(0.005)
        raise Failed('the server does not listen')

    def run(self, port, cm=False):
        with subprocess.Popen(self.server, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
            try:
                if cm:
                    cm_listens(server)
                else:
                    self.listens(server, port)
                client = subprocess.run(self.client, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        timeout=TOOL_LIMIT, check=False)
                if client.returncode:
                    raise Failed((client.stdout.strip().splitlines() or ['no output'])[-1])
                server.communicate(timeout=10)
                return client.stdout
            except subprocess.TimeoutExpired as late:
                raise OutOfTime('out of time') from late
            finally:
                if server.poll() is None:
                    server.kill()


def cm_listens(process):
    for _ in range(200):
        if process.poll() is not None or 'LISTEN' in run('ip', 'netns', 'exec', 'b', 'rdma', 'resource', 'show', 'cm_id'):
            return
        time.sleep(0.02)
    raise Failed('the server does not listen')


class Perftest:
    """One of perftest's programs, with one set of arguments."""
    def __init__(self, tool, size, *args):
        self.tool, self.size, self.args = tool, size, args
        self.lat = tool.endswith('_lat')
        self.list = int(args[args.index('-l') + 1]) if '-l' in args else 1
        self.qps = int(args[args.index('-q') + 1]) if '-q' in args else 1

    def name(self):
        return ' '.join([self.tool[3:], str(self.size), *self.args])

    def once(self, devices, iterations):
        Pair.port += 1
        way = ['-F', '-p', Pair.port, '-s', self.size, '-n', iterations, *self.args]
        if devices.type == 'siw':
            way.append('-R')
        server, client = (on(node, cpu, self.tool, '-d', devices.type + '_' + node, '-x', devices.gid[node], *way, *more)
                          for node, cpu, more in (('b', -1 % os.cpu_count(), []), ('a', 0, [devices.ip['b']])))
        out = Pair(server, client).run(Pair.port, devices.type == 'siw')
        rows = re.findall(r'^ *%d +\d+ +(.*\d)\s*$' % self.size, out, re.M)
        if not rows or 'Correlation' in out:
            raise NoClock('perftest could not measure the clock')
        values = [float(v) for v in rows[-1].split()]
        if self.lat:
            low, high, typical, mean, _deviation, p99, p999 = values[:7]
            return {'value': typical, 'mean': mean, 'p99': p99, 'p99.9': p999, 'min': low, 'max': high}
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
    over all rails, that have a rate."""
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
        if self.what == 'memcpy':
            return {'value': int(got['memcpy_bytes']) / int(got['memcpy_ns']) * 1000}
        if self.what == 'small':
            return {'value': int(got['packets']) / int(got['ns']) * 1e9}
        return {'value': int(got['bytes']) / int(got['ns']) * 1000}


def write(size, *args):
    return Perftest('ib_write_bw', size, *args)


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
    'mtu': (lambda: [write(MIB)], lambda: [write(MIB)], 'frames'),
    'full': (everything, lambda: sweep(sizes=(4096, 65536, MIB)), 'frames'),
    'sizes': (lambda: sweep(sizes=(1024, 4096, 16384, 65536, MIB)), lambda: sweep(sizes=(4096, 65536, MIB)), 'frames'),
    'rails': (lambda: [write(65536), write(MIB), write(MIB, '-b')], lambda: [], 'tcp'),
    'shaped': (lambda: [write(MIB)], lambda: [], 'shaped'),
    'lossy': (lambda: [write(65536), write(MIB), Perftest('ib_read_bw', MIB), Perftest('ib_write_lat', 4)],
              lambda: [], 'tcp'),
    'latency': (lambda: [Perftest('ib_write_lat', 4), Perftest('ib_read_lat', 4)], lambda: [], ''),
}


def with_tcp_and_limits(limits, bare, uncut):
    out = {}
    if limits:
        out['tcp'] = [Tcp('one')] + ([Tcp('both')] if uncut else [])
        if uncut and limits == 'frames':
            out['tcp'].append(Tcp('cpu'))
    kinds = {'frames': ['bytes', 'one', 'frame', 'small', 'memcpy'] if uncut else ['bytes', 'one'], 'shaped': ['rails']}
    if limits in kinds and bare:
        out['bare'] = [Bare(kind, bare) for kind in kinds[limits]]
    return out


def cut_rails(yes):
    """A device that takes no superframe: they are cut in front of it."""
    for node in 'ab':
        for rail in range(int(ENV['RAILS'])):
            run('ip', 'netns', 'exec', node, 'ethtool', '-K', 'rail%d' % rail, 'tx-gso-list', 'off' if yes else 'on')


class Session:
    def __init__(self, peers, repetitions, seconds):
        self.peers, self.repetitions, self.seconds = peers, repetitions, seconds
        self.devices = Devices()
        self.results = {}
        self.failures = []
        self.given_up = set()

    def one(self, kind, test, cut):
        """@test is measured once more, and tried again when something other than speed was in the way."""
        key = (kind, test.name(), cut)
        if key in self.given_up:
            return
        had = self.results.get(key)
        last = had['values'][-1]['value'] if had else None
        tries = 0
        while tries < TRIES:
            tries += 1
            try:
                value = test.measure(self.devices, self.seconds, last)
            except OutOfTime as error:
                problem = str(error)
                if kind != 'medge':
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
        if kind != 'medge':
            self.given_up.add(key)
        self.failures.append({'type': kind, 'test': test.name(), 'cut': cut, 'why': problem})
        say('%s %s%s was not measured: %s' % (kind, test.name(), ', cut' if cut else '', problem))

    def round(self, tests, cut):
        """Returns who took how many seconds."""
        took = {}
        for kind, mine in tests.items():
            began = time.monotonic()
            self.devices.use(kind)
            for test in {test.name(): test for test in mine}.values():
                self.one(kind, test, cut)
            took[kind] = time.monotonic() - began
        return took

    def all(self, which, bare):
        uncut, cut, limits = SETS[which]
        for turn in range(self.repetitions):
            for is_cut, shared in ((False, uncut()), (True, cut())):
                if not shared:
                    continue
                if cut():
                    cut_rails(is_cut)
                theirs = compared() if which == 'floors' and not is_cut else shared
                tests = {peer: shared if peer == 'medge' else theirs for peer in self.peers}
                if which == 'full' and not is_cut:
                    tests['medge'] = shared + own()
                took = self.round({**tests, **with_tcp_and_limits(limits, bare, not is_cut)}, is_cut)
                say('repetition %d of %d%s: %s' % (turn + 1, self.repetitions, ', cut' if is_cut else '',
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
