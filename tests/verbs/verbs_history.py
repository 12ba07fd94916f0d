#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Real QPs over bad rails, judged by what was seen of memory, and when.

Hypothesis makes up ops, fences, kinds of memory, and what the rails do; the
program verbs_history runs them; the contract's rules judge what it saw. Runs in
the lab, from verbs_history.sh.

  verbs_history.py PROGRAM [--seconds N] [--seed N]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import threading
import time

import hypothesis
from hypothesis import strategies as st

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'contract'))
from contract import SENDS, Op, Violation, before_delivery, must_precede  # noqa: E402

OPCODES = ['write', 'write_imm', 'send', 'send_imm', 'read', 'fetch_add']
BACKWARD, FORWARD, WAIT, BAD = 1, 2, 4, 8
SUCCESS, FLUSHED = 0, 5
RAILS = int(os.environ['RAILS'])
# What all rails do. It costs time to set, so each has its own share of the time.
WEATHER = ['delay 1ms 1ms', 'delay 300us 300us loss 2% duplicate 1%']
RARELY = st.sampled_from([False] * 5 + [True])


# ---- what is made up ----

@st.composite
def ops(draw, relaxed, fences, index):
    opcode = draw(st.sampled_from(['write'] * 5 + OPCODES))
    mark = RARELY if fences else st.just(False)
    op = Op(opcode, backward=draw(mark), forward=draw(mark), wait=draw(mark))
    op.space = draw(st.sampled_from(['strict', 'relaxed']))
    op.ordered = not relaxed and op.space == 'strict'
    op.length = draw(st.one_of(st.integers(0, 64), st.integers(0, 16000)))
    op.of = draw(st.integers(0, index)) if opcode == 'read' else 0
    op.solo = draw(st.sampled_from([True, True, False]))
    return op


@st.composite
def cases(draw):
    relaxed, fences = draw(st.booleans()), draw(st.booleans())
    posted = [draw(ops(relaxed, fences, index)) for index in range(draw(st.integers(2, 24)))]
    for op in posted:
        if op.opcode == 'read':
            op.length = min(op.length, posted[op.of].length)
    named = [op for op in posted if op.opcode in ('write', 'write_imm') and op.length]
    if named and draw(RARELY):
        draw(st.sampled_from(named)).bad = True
    return {
        'relaxed': relaxed,
        'late': draw(st.sampled_from([0, 0, 0, 50])),
        # A rail is cut so many milliseconds after the start, if at all.
        'cut': draw(st.sampled_from([None] * 9 + [0, 1, 3])),
        'ops': posted,
    }


# ---- what is run ----

def set_weather(weather):
    for node in 'ab':
        for rail in range(RAILS):
            subprocess.run(['tc', '-n', node, 'qdisc', 'replace', 'dev', 'rail%d' % rail, 'root',
                            'netem', 'limit', '100000', *weather.split()], check=True)


def set_last_rail(state):
    subprocess.run(['ip', '-n', 'a', 'link', 'set', 'rail%d' % (RAILS - 1), state], check=True)


def cut_last_rail(after):
    """Its carrier goes, and comes again."""
    time.sleep(after / 1000)
    set_last_rail('down')
    time.sleep(0.005)
    set_last_rail('up')


class Program:
    """verbs_history, at work."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)

    def run(self, told):
        self.process.stdin.write(told)
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line == 'done\n':
                return
            yield [int(word) for word in line.split()]
        raise Violation('the program ends: %s' % self.process.stderr.read())


def tell(case):
    lines = ['case %d %d' % (case['relaxed'], case['late'])]
    for op in case['ops']:
        flags = BACKWARD * op.backward + FORWARD * op.forward + WAIT * op.wait + BAD * op.bad
        lines.append('op %d %d %d %d %d %d' % (
            OPCODES.index(op.opcode), flags, op.space == 'relaxed',
            8 if op.opcode == 'fetch_add' else op.length, op.of, op.solo))
    return '\n'.join(lines + ['run']) + '\n'


# ---- what must hold ----

class Seen:
    """What was seen of one op."""

    def __init__(self, first, missing, completed, status, delivered, value):
        self.first, self.missing = first, missing
        self.completed, self.status = completed, status
        self.delivered, self.value = delivered, value


def require(holds, text, *args):
    if not holds:
        raise Violation(text % args)


def check_order(posted, seen, i, j):
    """Op @i was posted before op @j."""
    first, then = seen[i], seen[j]
    if must_precede(posted, i, j):
        require(not then.first or first.missing < then.first,
                'op %d was seen, then op %d before it was not all there', j, i)
    if before_delivery(posted, i, j):
        require(not then.delivered or first.missing < then.delivered,
                'op %d was delivered, then op %d was not all there', j, i)
    require(first.completed < then.completed, 'op %d completed before op %d', j, i)
    if then.status == SUCCESS:
        require(first.status == SUCCESS, 'op %d completed well, op %d did not', j, i)
        require(first.missing < then.completed, 'op %d completed, then op %d was not all there',
                j, i)


def check_op(posted, seen, j):
    op, is_ = posted[j], seen[j]
    require(is_.missing < is_.completed or is_.status != SUCCESS,
            'op %d completed, and was not all there', j)
    if op.bad:
        require(not is_.first, 'op %d was seen, and must be refused', j)
    if op.opcode == 'read' and is_.status == SUCCESS and op.of < j and \
            posted[op.of].opcode in ('write', 'write_imm') + SENDS:
        require(is_.value == op.length, 'read %d brings %d bytes of op %d, not %d', j,
                is_.value, op.of, op.length)


def check_status(posted, seen):
    bad = next((j for j, op in enumerate(posted) if op.bad), len(posted))
    for j, is_ in enumerate(seen):
        good = is_.status == SUCCESS
        if j < bad:
            require(good, 'op %d ends with status %d', j, is_.status)
            continue
        require(not good and (is_.status == FLUSHED) == (j > bad),
                'op %d ends with status %d, and op %d was refused', j, is_.status, bad)
        # One between the two may have happened, if nothing made it wait for the
        # refused one: check_order asks for it.
        require(j == bad or not is_.first or not must_precede(posted, bad, j),
                'op %d was seen, and op %d before it never happened', j, bad)


def check_atomics(posted, seen):
    answers = [is_.value for op, is_ in zip(posted, seen)
               if op.opcode == 'fetch_add' and is_.status == SUCCESS]
    require(answers == list(range(len(answers))), 'atomics answer %s', answers)


def judge(case, seen):
    posted = case['ops']
    require(len(seen) == len(posted), '%d ops were told of', len(seen))
    check_status(posted, seen)
    check_atomics(posted, seen)
    for j in range(len(posted)):
        check_op(posted, seen, j)
        for i in range(j):
            check_order(posted, seen, i, j)


# ---- all of it ----

class Over(BaseException):
    """Time is up; not an Exception, which Hypothesis would try to make small."""


class Bench:
    """Runs cases until the time is over."""

    def __init__(self, path):
        self.path, self.program, self.until = path, None, 0
        self.cases = self.ops = self.overtaken = 0
        self.failed = False

    def run(self, case):
        # One that failed is made small, however long that takes.
        if time.monotonic() > self.until and not self.failed:
            raise Over
        if not self.program or self.program.process.poll() is not None:
            self.program = Program(self.path)
        cut = threading.Thread(target=cut_last_rail, args=(case['cut'] or 0,))
        if case['cut'] is not None and RAILS > 1:
            cut.start()
        try:
            seen = [Seen(*line) for line in self.program.run(tell(case))]
            judge(case, seen)
        except Violation:
            self.failed = True
            raise
        finally:
            if cut.ident:
                cut.join()
        self.cases += 1
        self.ops += len(case['ops'])
        self.overtaken += sum(bool(x.first) and x.first < y.missing
                              for k, y in enumerate(seen) for x in seen[k + 1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--seconds', type=float, default=25)
    parser.add_argument('--seed', type=int, default=1)
    args = parser.parse_args()
    bench = Bench(args.program)

    @hypothesis.seed(args.seed)
    @hypothesis.settings(max_examples=100000, deadline=None, database=None, print_blob=False,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(cases())
    def run(case):
        bench.run(case)

    for weather in WEATHER:
        set_weather(weather)
        bench.until = time.monotonic() + args.seconds / len(WEATHER)
        try:
            run()
        except Over:
            continue
        except BaseException:
            print('FAIL: seed %d, each rail: %s' % (args.seed, weather), flush=True)
            raise
    print('%d cases, seed %d: %d ops, %d overtook another' % (
        bench.cases, args.seed, bench.ops, bench.overtaken))
    if not bench.cases or not bench.overtaken:
        sys.exit('nothing overtook anything: this shows nothing')


if __name__ == '__main__':
    main()
