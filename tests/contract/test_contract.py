#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The model itself: it accepts what the contract allows, and nothing else."""
import sys

from contract import Op, Violation, check


def place(j, offset=0, length=8, at=None, space='strict'):
    return ('place', 0, j, offset, length, space, 100 * j + offset if at is None else at)


def writes(**marks):
    """Three writes; marks of an op are given as oN=dict(...)."""
    return [Op('write', at=100 * j, **marks.get('o%d' % j, {})) for j in range(3)]


def done(*order):
    return [place(j) for j in order] + \
        [('perform', 0, j) for j in range(3)] + [('complete', 0, j, True) for j in range(3)]


LOOSE = dict(ordered=False)
RELAXED = {'o0': LOOSE, 'o1': LOOSE, 'o2': LOOSE}
READ = [Op('write', ordered=False), Op('read'), Op('write', ordered=False)]
READ_START = [place(0, at=0), ('perform', 0, 0), ('perform', 0, 1)]


def read_end(data, forward=False, early=True):
    ops = [READ[0], Op('read', forward=forward), READ[2]]
    later = [place(2, at=0)]
    read = [('read', 0, 1, data)]
    return ops, READ_START + (later + read if early else read + later) + \
        [('perform', 0, 2)] + [('complete', 0, j, True) for j in range(3)]


GOOD = {
    'in order': (writes(), done(0, 1, 2)),
    'relaxed, reordered': (writes(**RELAXED), done(2, 0, 1)),
    'backward fence': (writes(o0=LOOSE, o1=LOOSE, o2=dict(ordered=False, backward=True)),
                       done(1, 0, 2)),
    'forward fence': (writes(o0=dict(ordered=False, forward=True), o1=LOOSE, o2=LOOSE),
                      done(0, 2, 1)),
    'read before': read_end(b'\1' * 8, early=False),
    'read between': read_end(b'\1\3' * 4),
    'refused': ([Op('write', bad=True)], [('complete', 0, 0, False)]),
    'atomic': ([Op('fetch_add', operand=5)],
               [('atomic', 0, 0, 0, 0, 5), ('perform', 0, 0), ('answer', 0, 0, 0),
                ('complete', 0, 0, True)]),
}
BAD = {
    'strict, reordered': (writes(), done(1, 0, 2)),
    'backward fence overtaken': (writes(o0=LOOSE, o1=LOOSE,
                                        o2=dict(ordered=False, backward=True)), done(0, 2, 1)),
    'forward fence overtaken': (writes(o0=dict(ordered=False, forward=True), o1=LOOSE,
                                       o2=LOOSE), done(2, 0, 1)),
    'bytes out of order': ([Op('write')], [place(0, 4, 4), place(0, 0, 4), ('perform', 0, 0),
                                           ('complete', 0, 0, True)]),
    'bytes twice': (writes(**RELAXED), done(0, 0, 1)),
    'a byte missing': ([Op('write')], [place(0, 0, 7), ('perform', 0, 0),
                                       ('complete', 0, 0, True)]),
    'elsewhere': ([Op('write')], [place(0, at=1), ('perform', 0, 0), ('complete', 0, 0, True)]),
    'completed first': ([Op('write')], [place(0), ('complete', 0, 0, True), ('perform', 0, 0)]),
    'never completed': ([Op('write')], [place(0), ('perform', 0, 0)]),
    'performed out of order': (writes(**RELAXED), [place(1), ('perform', 0, 1)]),
    'read of what was overwritten': (READ[:2], READ_START + [('read', 0, 1, b'\0' * 8),
                                     ('complete', 0, 0, True), ('complete', 0, 1, True)]),
    'read of what comes later': read_end(b'\3' * 8, early=False),
    'read over a fence': read_end(b'\1\3' * 4, forward=True),
    'refused, but written': ([Op('write', bad=True)], [place(0), ('complete', 0, 0, False)]),
    'atomic twice': ([Op('fetch_add', operand=5)],
                     [('atomic', 0, 0, 0, 0, 5), ('atomic', 0, 0, 0, 5, 10),
                      ('perform', 0, 0), ('complete', 0, 0, True)]),
    'atomic with a wrong answer': ([Op('fetch_add', operand=5)],
                                   [('atomic', 0, 0, 0, 0, 5), ('perform', 0, 0),
                                    ('answer', 0, 0, 5), ('complete', 0, 0, True)]),
    'atomic that forgets': ([Op('cmp_swap', operand=0, swap=7), Op('cmp_swap', operand=0, swap=7)],
                            [('atomic', 0, 0, 0, 0, 7), ('perform', 0, 0),
                             ('atomic', 0, 1, 0, 0, 7)]),
}


def main():
    for name, (ops, history) in GOOD.items():
        check([ops, []], history)
    for name, (ops, history) in BAD.items():
        try:
            check([ops, []], history)
        except Violation:
            continue
        print('FAIL test_contract: the model accepts: %s' % name)
        return 1
    print('PASS test_contract: %d histories accepted, %d refused' % (len(GOOD), len(BAD)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
