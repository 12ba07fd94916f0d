#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two transports on a hostile network, judged by what memory saw.

Hypothesis makes up ops, fences, kinds of memory, faults; build/san/history runs
them; contract.py, which knows the contract and not the transport, judges each
change of memory. What fails is made small and printed, with the way to see it again:

  test_history.py PROGRAM [--examples N] [--seed N]

MEDGE_SEED in the environment, a number or "random", is the seed, too.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

try:
    import hypothesis
    from hypothesis import strategies as st
except ImportError:
    print('SKIP test_history: python3-hypothesis is missing')
    sys.exit(0)

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'contract'))
from contract import ATOMICS, SENDS, Op, Violation, check  # noqa: E402

# wire.h, conn.h, host.h
OPCODES = ['write', 'write_imm', 'send', 'send_imm', 'read', 'cmp_swap', 'fetch_add']
STRICT, BACKWARD, FORWARD = 1, 2, 4
WAIT, SIGNALED = 1, 2
REGIONS = {'strict': 0, 'relaxed': 1, 'atomic': 2}
REGION_LEN, REGION_NONE, ATOMIC_LEN = 4096, 9, 16
RECV_STEP = 8192
USEC, MSEC = 1000, 1000000

PROGRAM = None


# ---- what is made up ----

RARELY = st.sampled_from([False] * 5 + [True])


@st.composite
def ops(draw, relaxed, fences):
    """One op, when it is posted after the one before, and whether it asks for its completion."""
    opcode = draw(st.sampled_from(['write'] * 4 + OPCODES))
    mark = RARELY if fences else st.just(False)
    op = Op(opcode, backward=draw(mark), forward=draw(mark), wait=draw(mark))
    op.strict_mark = not relaxed
    if opcode in ATOMICS:
        op.space, op.at, op.length = 'atomic', 8 * draw(st.integers(0, 1)), 8
        op.operand = draw(st.integers(0, 3))
        op.swap = draw(st.integers(0, 3))
    else:
        op.length = draw(st.one_of(st.integers(0, 16), st.integers(0, 1200)))
        op.space = draw(st.sampled_from(['strict', 'relaxed']))
        op.at = draw(st.integers(0, REGION_LEN - op.length))
    if opcode in SENDS:
        # The kind of memory, and the index, of the receive.
        op.at = 0
    op.ordered = op.strict_mark and op.space != 'relaxed'
    op.gap = draw(st.sampled_from([0, 0, 0, 1, 50 * USEC, MSEC]))
    op.signaled = draw(st.booleans())
    return op


@st.composite
def links(draw):
    calm = draw(st.booleans())
    ppm = st.just(0) if calm else st.sampled_from([0, 10000, 100000])
    return (draw(st.sampled_from([1000, 20 * USEC, MSEC])),
            draw(st.sampled_from([0, 100 * USEC])),
            draw(ppm), draw(ppm), draw(st.sampled_from([0, 100000, 500000])),
            draw(st.sampled_from([1, 100 * USEC, MSEC])))


@st.composite
def rail_faults(draw, nrails):
    """Rail 0 always comes back, so that there is a way in the end."""
    faults = []
    for rail in range(nrails):
        if not draw(RARELY):
            continue
        what = draw(st.sampled_from([1, 2, 3, 4, 8, 12, 15]))
        down = draw(st.integers(0, 5 * MSEC))
        faults.append((down, rail, what, 0))
        if rail == 0 or draw(st.booleans()):
            faults.append((down + draw(st.integers(1, 20 * MSEC)), rail, what, 1))
    return faults


@st.composite
def cases(draw):
    nrails = draw(st.integers(1, 4))
    case = {
        'pair': (nrails, draw(st.integers(0, 2**32)), draw(st.sampled_from([64, 200, 1024])),
                 draw(st.sampled_from([0, 0, 500000])), 200 * USEC,
                 draw(st.sampled_from([0, 0, 2])), draw(st.sampled_from([0, 100 * USEC]))),
        'links': [[draw(links()) for _ in range(nrails)] for _ in range(2)],
        'faults': draw(rail_faults(nrails)),
        'ops': [],
        'receives': [],
    }
    for side in range(2):
        case['ops'].append(draw(st.lists(
            ops(draw(st.booleans()), draw(st.booleans())), min_size=1 - side,
            max_size=24 if side == 0 else 8)))
        late = draw(st.sampled_from([0, 0, 2 * MSEC]))
        case['receives'].append([
            draw(st.integers(0, late)) for op in case['ops'][side]
            if op.opcode in SENDS + ('write_imm',)])
    spoil(draw, case)
    return case


def spoil(draw, case):
    """At most one op asks for memory that it is not granted."""
    if not draw(RARELY):
        return
    named = [op for op in case['ops'][0]
             if op.opcode not in SENDS and op.opcode not in ATOMICS and op.length]
    if named:
        draw(st.sampled_from(named)).bad = True


# ---- what is run ----

def tell(case):
    """The case, as history.c reads it."""
    lines = ['pair %d %d %d %d %d %d %d' % case['pair']]
    for side in range(2):
        for rail, link in enumerate(case['links'][side]):
            lines.append('link %d %d %d %d %d %d %d %d' % (side, rail, *link))
    for fault in case['faults']:
        lines.append('rail %d %d %d %d' % fault)
    for side, posted in enumerate(case['ops']):
        lines += tell_side(side, posted, list(case['receives'][side]))
    return '\n'.join(lines) + '\n'


def tell_side(side, posted, receives):
    now, lines, receive_at = 0, [], 0
    for op in posted:
        now += op.gap
        flags = STRICT * op.strict_mark + BACKWARD * op.backward + FORWARD * op.forward
        submit = WAIT * op.wait + SIGNALED * op.signaled
        region = REGION_NONE if op.bad else REGIONS[op.space]
        length = ATOMIC_LEN if op.opcode in ATOMICS else op.length
        lines.append('op %d %d %d %d %d %d %d %d %d %d' % (
            side, now, OPCODES.index(op.opcode), flags, submit, region, op.at, length,
            op.operand, op.swap))
        if op.opcode in SENDS + ('write_imm',):
            receive_at = max(receive_at, receives.pop(0))
            lines.append('recv %d %d %d %d' % (not side, receive_at, op.length,
                                               op.space == 'relaxed'))
    return lines


def listen(text):
    """The history, as history.c tells it."""
    for line in text.splitlines():
        what, side, j, *rest = line.split()
        side, j = int(side), int(j)
        if what == 'place':
            yield what, side, j, int(rest[0]), int(rest[1]), rest[2], int(rest[3])
        elif what == 'read':
            yield what, side, j, bytes.fromhex(rest[0].strip('-'))
        elif what == 'complete':
            yield what, side, j, rest[0] == '0'
        else:
            yield (what, side, j, *map(int, rest))


def judge(case):
    told = tell(case)
    try:
        done = subprocess.run([PROGRAM], input=told, capture_output=True, text=True, timeout=60,
                              check=False)
        if done.returncode:
            raise Violation('the transport\'s own checks: %s' % done.stderr)
        check(case['ops'], listen(done.stdout))
    except (Violation, subprocess.TimeoutExpired):
        path = pathlib.Path(PROGRAM).with_suffix('.case')
        path.write_text(told)
        hypothesis.note('the case: %s -v <%s' % (PROGRAM, path))
        raise


def seed_of(text):
    return time.time_ns() if text == 'random' else int(text, 0)


def main():
    global PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--examples', type=int, default=300)
    parser.add_argument('--seed', default=os.environ.get('MEDGE_SEED') or '1')
    args = parser.parse_args()
    PROGRAM = args.program
    seed = seed_of(args.seed)
    counts = {'cases': 0, 'ops': 0}

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=args.examples, deadline=None, database=None,
                         print_blob=False,
                         suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(cases())
    def run(case):
        counts['cases'] += 1
        counts['ops'] += sum(map(len, case['ops']))
        judge(case)

    try:
        run()
    except BaseException:
        print('FAIL test_history: seed %d' % seed, flush=True)
        raise
    print('PASS test_history: %d cases, seed %d, %d ops' % (counts['cases'], seed, counts['ops']))


if __name__ == '__main__':
    main()
