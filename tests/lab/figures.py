#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Draws what lab figures has measured: one HTML page with all in it.

  figures.py DIRECTORY    rails-N.txt, fences.txt, congestion.txt, machine.txt in, figures.html out
"""
import html
import io
import pathlib
import re
import sys

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt  # noqa: E402

SCHEDULERS = ['round-robin', 'weighted', 'weighted-dynamic', 'earliest']
RAILS = [1, 2, 4, 8]
# Of MultiEdge, as rails_bw.sh has them: share of nominal by links, one way, round robin.
THESIS = {1: 99.2, 2: 99.2, 8: 65}
ROW = re.compile(r'(.{26}) (.{17}) +([\d.]+) % +([\d.]+) % +(?:([\d.]+) %)? *(.*)')
FENCE = re.compile(r'(.+?) {2,}(\d+) +(\d+) +([\d.]+) %')
SIM = re.compile(r'(.+?) {2,}([\d.]+) % +([\d.]+) +[\d.]+ ms +([\d.]+) ms +([\d.]+) %')


def read(path):
    return path.read_text() if path.exists() else ''


def rows(pattern, text):
    return [[g.strip() if g else g for g in m.groups()]
            for m in map(pattern.match, text.splitlines()) if m]


def svg(figure):
    out = io.StringIO()
    figure.savefig(out, format='svg', bbox_inches='tight')
    plt.close(figure)
    return out.getvalue()[out.getvalue().index('<svg'):]


def table(head, body):
    def line(tag, cells):
        return '<tr>' + ''.join('<%s>%s</%s>' % (tag, html.escape(str(c)), tag)
                                for c in cells) + '</tr>'
    return '<table>' + line('th', head) + ''.join(line('td', r) for r in body) + '</table>'


def bars(axes, groups, series, values, unit):
    """@values: by (series, group); one that is missing was not measured."""
    width = 0.8 / len(series)
    for k, name in enumerate(series):
        at = [i + (k - (len(series) - 1) / 2) * width for i in range(len(groups))]
        axes.bar(at, [values.get((name, g), 0) for g in groups], width * 0.92, label=name)
    axes.set_xticks(range(len(groups)), [str(g).replace(' of ', '\nof ').replace(' longer', '\nlonger')
                                         for g in groups])
    axes.set_ylabel(unit)
    axes.grid(axis='y', alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)


def draw_rails(measured):
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2))
    share = {(s, n): float(reached) for n in RAILS for name, s, reached, *_ in measured[n]
             if name == 'one way'}
    bars(left, RAILS, SCHEDULERS, share, '% of nominal')
    for i, n in enumerate(RAILS):
        bare = [float(r[3]) for r in measured[n] if r[0] == 'one way']
        if bare:
            left.plot([i - 0.45, i + 0.45], [bare[0]] * 2, color='black', lw=1,
                      label='bare frames' if i == 0 else None)
    left.plot([RAILS.index(n) for n in THESIS], THESIS.values(), 'kD', ms=6,
              label='MultiEdge 2008')
    left.set_title('One way, 1 MiB writes, rails of 1 Gbit/s')
    left.set_xlabel('rails')
    left.set_ylim(0, 110)
    kinds = ['one way', 'both ways', 'one of 100 Mbit/s', 'one 10 ms longer']
    share = {(s, name): float(reached) for name, s, reached, *_ in measured[4]}
    bars(right, kinds, SCHEDULERS, share, '% of the rails\' sum')
    right.set_title('Four rails')
    right.set_ylim(0, 110)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc='lower center', ncol=6, bbox_to_anchor=(0.5, -0.1), frameon=False)
    return svg(figure)


def draw_fences(measured):
    figure, axes = plt.subplots(figsize=(9, 3.2))
    names = [r[0] for r in measured][::-1]
    axes.barh(names, [float(r[3]) for r in measured][::-1])
    axes.plot([8, 8], [-0.4, 0.4], 'k', lw=2, label='drained, at best, by the figures of the thesis')
    axes.set_xlabel('% of the rate without a fence')
    axes.set_title('64-byte relaxed writes, each followed by a flag')
    axes.legend(frameon=False, loc='lower right')
    axes.spines[['top', 'right']].set_visible(False)
    return svg(figure)


def pairs(measured):
    """Rows with control, each with the one without that follows it."""
    return [(a, b) for a, b in zip(measured, measured[1:]) if b[0] == 'without control']


def draw_congestion(measured):
    figure, both = plt.subplots(1, 2, figsize=(12, 4.2))
    names = [a[0] for a, _ in measured]
    for axes, column, unit in ((both[0], 1, 'goodput, %'), (both[1], 2, 'Jain index')):
        values = {}
        for a, b in measured:
            values['with control', a[0]] = float(a[column])
            values['without', a[0]] = float(b[column])
        bars(axes, names, ['with control', 'without'], values, unit)
        axes.set_xticks(range(len(names)), names, rotation=25, ha='right')
    figure.legend(*both[0].get_legend_handles_labels(), loc='lower center', ncol=2,
                  bbox_to_anchor=(0.5, -0.22), frameon=False)
    figure.suptitle('Simulated: 1,024 nodes in a fat tree, and incast of 31 into one')
    return svg(figure)


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: figures.py DIRECTORY')
    where = pathlib.Path(sys.argv[1])
    rails = {n: rows(ROW, read(where / ('rails-%d.txt' % n))) for n in RAILS}
    fences = rows(FENCE, read(where / 'fences.txt'))
    sim = rows(SIM, read(where / 'congestion.txt'))
    if not all(rails.values()) or not fences or not sim:
        sys.exit('nothing to draw: not all was measured')
    page = ['<!doctype html><meta charset="utf-8"><title>medge: figures</title>',
            '<style>body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}'
            'table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em;'
            'border-bottom:1px solid #ddd;text-align:left}svg{max-width:100%;height:auto}</style>',
            '<h1>medge</h1>',
            '<p>' + html.escape('; '.join(read(where / 'machine.txt').split('\n')[:-1])) + '</p>',
            '<h2>Schedulers</h2>', draw_rails(rails),
            table(['rails', 'what', 'scheduler', 'reached, %', 'bare frames, %', 'limit, %', 'MultiEdge (2008)'],
                  [[n, *r[:2], r[2], r[3], r[4] or '', r[5]] for n in RAILS for r in rails[n]]),
            '<h2>Fences</h2>', draw_fences(fences),
            table(['writes of the pair', 'pairs/s', 'ns a pair', 'rate, %'], fences),
            '<p>The thesis has fences and measures none; by its cost of an operation and its round trip, '
            'draining at the sender leaves 8 % at best.</p>',
            '<h2>Congestion</h2>', draw_congestion(pairs(sim)),
            '<pre>' + html.escape(read(where / 'congestion.txt')) + '</pre>']
    (where / 'figures.html').write_text('\n'.join(page))


if __name__ == '__main__':
    main()
