#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes of what lab bench has measured one JSON file, a table for the terminal and one HTML page.

  report.py DIRECTORY    boot-*.json, path.json, breakdown.json, of them what there is, and machine.json in;
                         bench.json, bench.html out
"""
import json
import pathlib
import sys

import anatomy
import floors
import page
import papers

WIDTH = 28


def print_table(boots, verdicts):
    form = '%-' + str(WIDTH) + 's %10s %-11s  %-18s %10s  %8s  %-15s %8s  %s'
    print(form % ('figure', 'medge', '', 'against', '', 'ratio', '', 'floor', ''))
    last = ''
    for v in verdicts:
        print(form % (v['label'] if v['label'] != last else '', page.number(v['ours']), v['unit'], v['against'],
                      page.number(v['theirs']), page.number(v['ratio']), '(%s..%s)' % (page.number(v['low']), page.number(v['high'])),
                      v['sense'] + ' ' + page.number(v['floor']), 'pass' if v['pass'] else 'SHORT'))
        last = v['label']
    apart = floors.cpus_apart(boots)
    if apart:
        print(apart)
    print('%d of %d figures reach their floor' % (sum(v['pass'] for v in verdicts), len(verdicts)))


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: report.py DIRECTORY')
    where = pathlib.Path(sys.argv[1])
    data = [json.loads(path.read_text()) for path in sorted(where.glob('boot-*.json'))]
    parts = anatomy.read(where)
    if not data and not parts:
        sys.exit('nothing was measured')
    machine = json.loads((where / 'machine.json').read_text())
    boots = [floors.Boot(d) for d in data]
    verdicts = floors.judged(boots)
    (where / 'bench.json').write_text(json.dumps({'machine': machine, 'floors': verdicts, 'boots': data, **parts}, indent=1))
    if boots:
        print_table(boots, verdicts)
    anatomy.print_all(parts)
    (where / 'bench.html').write_text(page.make(machine, boots, verdicts, papers.sections(boots) + anatomy.sections(parts)))
    print('%s, %s' % (where / 'bench.html', where / 'bench.json'))


if __name__ == '__main__':
    main()
