# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's two nodes as the bench has them: their devices, and programs with an end on each."""
import os
import pathlib
import re
import subprocess
import time

ENV = os.environ
# Seconds a program may take: peers on bad rails may hang.
TOOL_LIMIT = 20


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


def program(devices, name, *words, alone=False):
    """What one of the tests' programs prints: both ends are in it. @alone: on a's device."""
    env = dict(ENV)
    for node in 'ab':
        where = 'a' if alone else node
        env['DEV_' + node.upper()] = '%s_%s' % (devices.type, where)
        env['GID_' + node.upper()] = str(devices.gid[where])
        env['IP_' + node.upper()] = devices.ip[where]
        env['NETNS_' + node.upper()] = '/run/netns/' + where
    path = pathlib.Path(ENV['LAB_BUILD']) / 'tests/verbs' / name
    try:
        done = subprocess.run([str(path), *map(str, words)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=TOOL_LIMIT, check=False)
    except subprocess.TimeoutExpired as late:
        raise OutOfTime('out of time') from late
    if done.returncode:
        raise Failed((done.stdout.strip().splitlines() or ['no output'])[-1])
    return done.stdout


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
