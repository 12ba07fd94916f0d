#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares what operations cost with the last figures on record; one that has grown by more than GROWTH fails.

  cost.py [--record] HISTORY.csv RESULT    RESULT: lines of kernel release, type, operation, median, least, most
"""
import csv
import datetime
import pathlib
import sys

GROWTH = 0.05
FIELDS = ['date', 'kernel', 'type', 'operation', 'instructions']
FLOORS = {'write_65536': {'siw': 0.25, 'rxe': 0.12}, 'read_65536': {'siw': 0.15, 'rxe': 0.15},
          'write_64': {'siw': 0.5, 'rxe': 0.4}, 'write_64_list_32': {'siw': 0.2, 'rxe': 0.15}}


def measured(path):
    out = {}
    for words in (line.split() for line in path.read_text().splitlines()):
        if len(words) == 6 and words[3].isdigit():
            out[words[0], words[1], words[2]] = int(words[3])
    return out


def recorded(path):
    """The latest by kernel, type and operation."""
    if not path.exists():
        return {}
    with path.open(newline='') as f:
        return {(r['kernel'], r['type'], r['operation']): int(r['instructions']) for r in csv.DictReader(f)}


def record(path, costs):
    new = not path.exists()
    with path.open('a', newline='') as f:
        writer = csv.writer(f, lineterminator='\n')
        if new:
            writer.writerow(FIELDS)
        for key, cost in costs.items():
            writer.writerow([datetime.date.today().isoformat(), *key, cost])


def floors(costs):
    """Beside the peers that were measured in the same run."""
    by = {(kind, op): cost for (_, kind, op), cost in costs.items()}
    for op, floor in FLOORS.items():
        for kind, least in floor.items():
            if ('medge', op) in by and (kind, op) in by:
                ratio = by['medge', op] / by[kind, op]
                print("%-18s %8.3f of %s's, floor %-5g %s" % (op, ratio, kind, least, 'pass' if ratio <= least else 'SHORT'))


def main():
    words = sys.argv[1:]
    keep = '--record' in words
    words = [w for w in words if w != '--record']
    if len(words) != 2:
        sys.exit('usage: cost.py [--record] HISTORY.csv RESULT')
    history, costs = pathlib.Path(words[0]), measured(pathlib.Path(words[1]))
    if not costs:
        sys.exit('nothing was measured')
    last, grown = recorded(history), []
    print('%-18s %-6s %-24s %12s %12s' % ('operation', '', 'kernel', 'instructions', 'on record'))
    for key, cost in costs.items():
        was = last.get(key)
        change = '%+6.1f %%' % (100 * (cost / was - 1)) if was else ''
        print('%-18s %-6s %-24s %12d %12s %s' % (key[2], key[1], key[0], cost, was or '', change))
        if was and key[1] == 'medge' and cost > was * (1 + GROWTH):
            grown.append(key[2])
    floors(costs)
    if keep:
        record(history, costs)
    elif grown:
        sys.exit('costs more than %.0f %% above what is on record: %s' % (100 * GROWTH, ', '.join(grown)))


if __name__ == '__main__':
    main()
