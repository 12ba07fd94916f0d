#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The way of one message from program to program, by UDP and by medge, cut at the kernel's tracepoints.

  path.py OUT.json    in the lab, on one CPU whose clock counts instructions
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import typing

TRACING = pathlib.Path('/sys/kernel/tracing')
PROGRAM = pathlib.Path(os.environ.get('LAB_BUILD', '.')) / 'tests/verbs/ping_path'
MESSAGES = 20
# Of what recording an event takes, before its time is taken: 246 to 299 of 600 to 750 instructions, as profile.py saw
# them in Linux 7.3.
BEFORE = 0.4
LINE = re.compile(r'\s*\S.*-(\d+) +\[\d+\] +\S+ +(\d+): (\w+): (.*)')

# Whose work a step is, as the paper has it.
PARTS = {'out': 'program and system call, sending', 'send': 'protocol, sending', 'link': 'link',
         'receive': 'protocol, receiving', 'in': 'system and program, receiving',
         'beside': 'what it would not wait for on a CPU of its own'}


class Point(typing.NamedTuple):
    """A step, and the event that ends it; None: the program has the message."""
    step: str
    part: str
    event: typing.Optional[str]
    says: str = ''


# Both ways from the device on are the same code, but for the protocol.
DEVICE = [
    Point('bond0 and its queue', 'send', 'net_dev_queue', 'dev=rail0 '),
    Point('queue of the port', 'send', 'net_dev_start_xmit', 'dev=rail0 '),
    Point('veth hands the frame over', 'link', 'netif_rx', 'dev=rail0 '),
    Point('out of the device, into the receive softirq', 'in', 'softirq_entry', 'NET_RX'),
    Point('backlog', 'in', 'netif_receive_skb', 'dev=rail0 '),
]
RUNNABLE = Point('receiver made runnable', 'in', 'sched_wakeup', 'pid={receiver} ')


def beside(what):
    return Point(what, 'beside', 'sched_switch', 'next_pid={receiver} ')


WAYS = {
    'udp': [
        Point('send(): into the kernel', 'out', 'sys_enter'),
        Point('socket, UDP, IP, copy', 'send', 'net_dev_queue', 'dev=bond0 '),
        *DEVICE,
        Point('bond0, IP, UDP: into the socket\'s queue', 'receive', 'sched_waking', 'pid={receiver} '),
        RUNNABLE,
        beside('softirq ends, sender sleeps'),
        Point('switch to the receiver; recv() copies', 'in', 'sys_exit'),
        Point('return to the program', 'in', None),
    ],
    'verbs': [
        Point('ibv_post_send(): ring, into the kernel', 'out', 'sys_enter'),
        Point('uverbs; medge takes the work request', 'send', 'medge_submit'),
        Point('medge: which frame, which rail', 'send', 'medge_send'),
        Point('medge: header, payload', 'send', 'net_dev_queue', 'dev=rail0 '),
        *DEVICE[1:],
        Point('medge: decode, connection', 'receive', 'medge_receive', 'drop 0'),
        Point('medge: place, perform', 'receive', 'medge_perform'),
        Point('medge: completion; uverbs: event', 'receive', 'sched_waking', 'pid={receiver} '),
        RUNNABLE,
        beside('acknowledgment; softirq ends, sender sleeps'),
        Point('switch to the receiver; read() of the event', 'in', 'sys_exit'),
        Point('program: event, arm, poll', 'in', None),
    ],
}
# raw_syscalls are switched on together: what is dear is that there are any.
EVENTS = {'sys_enter': 'raw_syscalls', 'sys_exit': 'raw_syscalls', 'net_dev_queue': 'net/net_dev_queue',
          'net_dev_start_xmit': 'net/net_dev_start_xmit', 'netif_rx': 'net/netif_rx',
          'softirq_entry': 'irq/softirq_entry', 'netif_receive_skb': 'net/netif_receive_skb',
          'sched_waking': 'sched/sched_waking', 'sched_wakeup': 'sched/sched_wakeup',
          'sched_switch': 'sched/sched_switch',
          'medge_submit': 'medge/medge_submit', 'medge_send': 'medge/medge_send',
          'medge_receive': 'medge/medge_receive', 'medge_perform': 'medge/medge_perform'}


class Event(typing.NamedTuple):
    at: int
    name: str
    text: str


class Message(typing.NamedTuple):
    sent: int
    got: int
    back: int
    events: list    # from sent to got


class Lost(Exception):
    """A message did not go the way that it is said to go."""


def parse_trace(text):
    found = (LINE.match(line) for line in text.splitlines())
    return [Event(int(m.group(2)), m.group(3), m.group(4)) for m in found if m]


def parse_messages(text, events):
    """Returns the receiver's thread id, and the messages."""
    receiver, *stamps = [[int(word) for word in line.split()] for line in text.splitlines()]
    return receiver[0], [Message(*three, [e for e in events if three[0] <= e.at <= three[1]]) for three in stamps]


def cuts(points, receiver, message):
    """When each step of @message began, and when the last ended."""
    at, rest = [message.sent], iter(message.events)
    for point in points:
        if not point.event:
            at.append(message.got)
            continue
        says = point.says.format(receiver=receiver)
        at.append(next((e.at for e in rest if e.name == point.event and says in e.text + ' '), None))
        if at[-1] is None:
            raise Lost('%s was not traced: %s' % (point.event, ' '.join(e.name for e in message.events)))
    return at


def switch(name, value):
    (TRACING / name).write_text(str(value))


def run(way, sources):
    """One run of the program, with the events of @sources on."""
    for source in sources:
        switch('events/%s/enable' % source, 1)
    done = subprocess.run([PROGRAM, way, str(MESSAGES)], capture_output=True, text=True, timeout=100, check=False)
    if done.returncode:
        raise Lost(done.stderr or done.stdout)
    text = (TRACING / 'trace').read_text()
    switch('events/enable', 0)
    switch('trace', '')
    return parse_messages(done.stdout, parse_trace(text))


def one_way(messages):
    return statistics.median(m.got - m.sent for m in messages)


def round_trip(messages):
    return statistics.median(m.back - m.sent for m in messages)


def event_costs(way, sources, off):
    """What the record of an event takes, by its name: each source is on alone."""
    costs = {}
    for source in sources:
        _, messages = run(way, [source])
        often = statistics.median(len(m.events) for m in messages)
        if not often:
            raise Lost('%s: nothing was traced' % source)
        for name in (name for name, where in EVENTS.items() if where == source):
            costs[name] = (one_way(messages) - off) / often
    return costs


def recording(message, costs, begin, end):
    """What of the time from @begin to @end went into events."""
    return sum(costs[e.name] * ((begin <= e.at < end) * (1 - BEFORE) + (begin < e.at <= end) * BEFORE)
               for e in message.events)


def steps(points, receiver, messages, costs):
    raw, net = [], []
    for message in messages:
        at = cuts(points, receiver, message)
        raw.append([end - begin for begin, end in zip(at, at[1:])])
        net.append([end - begin - recording(message, costs, begin, end) for begin, end in zip(at, at[1:])])
    for point, traced, took in zip(points, zip(*raw), zip(*net)):
        yield {'step': point.step, 'part': point.part, 'until': point.event or 'ping_path',
               'instructions': statistics.median(took), 'least': min(took), 'most': max(took),
               'traced': statistics.median(traced)}


def measure(way):
    points = WAYS[way]
    sources = sorted({EVENTS[p.event] for p in points if p.event})
    _, quiet = run(way, [])
    costs = event_costs(way, sources, one_way(quiet))
    receiver, traced = run(way, sources)
    return {'steps': list(steps(points, receiver, traced, costs)), 'costs': costs,
            'one_way': one_way(quiet), 'one_way_traced': one_way(traced),
            'round_trip': round_trip(quiet), 'round_trip_traced': round_trip(traced),
            'events': statistics.median(len(m.events) for m in traced)}


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: path.py OUT.json')
    for name, value in (('tracing_on', 0), ('trace_clock', 'x86-tsc'), ('buffer_size_kb', 4096),
                        # Else every event has the switches between tasks looked at, for their names.
                        ('options/record-cmd', 0)):
        switch(name, value)
    try:
        ways = {way: measure(way) for way in WAYS}
    except Lost as error:
        sys.exit(str(error))
    pathlib.Path(sys.argv[1]).write_text(json.dumps(
        {'release': os.uname().release, 'messages': MESSAGES, 'parts': PARTS, 'ways': ways}, indent=1))


if __name__ == '__main__':
    main()
