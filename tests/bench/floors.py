# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which speed is enough: ratios of figures measured in one boot, and the floor of each."""
import dataclasses
import statistics

MIB = 1048576


class Boot:
    """What measure.py wrote of one boot."""
    def __init__(self, data):
        self.where = data['where']
        self.set = data['set']
        self.data = data
        self.results = {(r['type'], r['test'], r['cut']): r for r in data['results']}

    def values(self, kind, test, cut=False, field='value'):
        result = self.results.get((kind, test, cut))
        return [v[field] for v in result['values']] if result else []

    def median(self, kind, test, cut=False, field='value'):
        values = self.values(kind, test, cut, field)
        return statistics.median(values) if values else None

    def ratios(self, ours, theirs):
        """Of each repetition: what disturbed both is not in them."""
        return [a / b for a, b in zip(self.values(*ours), self.values(*theirs)) if b]


def cpus_apart(boots):
    """How far from each other, which is what speed depends on wherever two of them work for one connection: the least
    and the most of all, in words. A host may run a guest's where it likes, and change its mind."""
    took = [v['line_ns'] for boot in boots for (who, _, _), r in boot.results.items() if who == 'bare'
            for v in r['values'] if v.get('line_ns')]
    return 'a cache line from CPU to CPU and back: %d .. %d ns' % (min(took), max(took)) if took else ''


@dataclasses.dataclass
class Floor:
    """Ours is to be at least @least times theirs, or at most @most times."""
    label: str
    ours: tuple
    theirs: tuple
    against: str
    least: float = 0
    most: float = 0
    where: dict = dataclasses.field(default_factory=lambda: {'rails': '1', 'mtu': '9000', 'kernel': 'lab'})

    def boot(self, boots):
        for boot in boots:
            if (all(boot.where.get(k) == v for k, v in self.where.items()) and
                    boot.where['netem'] == '' and boot.where['rate'] == self.where.get('rate', '') and
                    boot.ratios(self.ours, self.theirs)):
                return boot
        return None

    def judge(self, boots):
        """What is said of it, or None: it was not measured."""
        boot = self.boot(boots)
        if not boot:
            return None
        ratios = boot.ratios(self.ours, self.theirs)
        ratio = statistics.median(ratios)
        return {'label': self.label, 'ours': boot.median(*self.ours), 'against': self.against,
                'theirs': boot.median(*self.theirs), 'unit': boot.results[self.ours[:3]]['unit'],
                'ratio': ratio, 'low': min(ratios), 'high': max(ratios),
                'floor': self.least or self.most, 'sense': '>=' if self.least else '<=',
                'pass': ratio >= self.least if self.least else ratio <= self.most}


def against(label, test, cut=False, least=None, where=None):
    """@least: by who is compared with."""
    more = {'where': where} if where else {}
    names = {'bare': 'bare frames', 'tcp': 'one TCP stream'}
    return [Floor(label, ('medge', test, cut), (who, test, cut), names.get(who, who), least=floor, **more)
            for who, floor in (least or {}).items()]


def beside(label, test, other, least):
    """Of two figures of medge's own."""
    return [Floor(label, ('medge', test, False), ('medge', other, False), other, least=least)]


def latency(label, test):
    where = {'rails': '1', 'mtu': '9000', 'kernel': '7'}
    return [Floor(label + extra, ('medge', test, False, field), (who, test, False, field), who, most=most, where=where)
            for who in ('rxe', 'siw') for extra, field, most in (('', 'value', 0.7), (', p99', 'p99', 1.0))]


MTU_1500 = {'rails': '1', 'mtu': '1500', 'kernel': 'lab'}
WRITE = 'write_bw %d' % MIB
FLOORS = [
    *against('write 1 MiB, MTU 9000', WRITE, least={'siw': 10, 'rxe': 25, 'tcp': 2, 'bare': 0.5}),
    *against('write 1 MiB, MTU 9000, cut', WRITE, True, {'siw': 5, 'rxe': 15, 'bare': 0.5}),
    *against('write 1 MiB, MTU 1500', WRITE, least={'siw': 12, 'rxe': 20}, where=MTU_1500),
    *against('write 1 MiB, MTU 1500, cut', WRITE, True, {'siw': 5, 'rxe': 8}, MTU_1500),
    *against('write 1 MiB, two ways', WRITE + ' -b', least={'siw': 6}),
    *beside('read 1 MiB', 'read_bw %d' % MIB, WRITE, 0.9),
    *beside('send 1 MiB', 'send_bw %d' % MIB, WRITE, 0.9),
    *against('write 4 KiB', 'write_bw 4096', least={'siw': 5, 'rxe': 5}),
    *against('write 64 B, lists of 32', 'write_bw 64 -l 32', least={'siw': 10, 'rxe': 10}),
    *against('write 64 B, one by one', 'write_bw 64', least={'siw': 2.5, 'rxe': 2.5}),
    *beside('write 4 KiB, 64 QPs', 'write_bw 4096 -q 64', 'write_bw 4096', 1.0),
    *against('two rails of 10 Gbit/s', WRITE, least={'bare': 0.95},
             where={'rails': '2', 'mtu': '9000', 'kernel': 'lab', 'rate': '10gbit'}),
    *beside('write 4 KiB, polling', 'write_bw 4096 polling=all', 'write_bw 4096 polling=off', 1.38),
    *beside('write 4 KiB, two ways, polling', 'write_bw 4096 -b polling=all', 'write_bw 4096 -b polling=off', 1.25),
    *beside('write 64 KiB, polling', 'write_bw 65536 polling=all', 'write_bw 65536 polling=off', 1.38),
    *beside('write 64 KiB, two ways, polling', 'write_bw 65536 -b polling=all', 'write_bw 65536 -b polling=off', 1.25),
    *latency('write latency 4 B, QEMU', 'write_lat 4'),
    *latency('read latency 4 B, QEMU', 'read_lat 4'),
]


def judged(boots):
    return [verdict for verdict in (floor.judge(boots) for floor in FLOORS) if verdict]
