# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The way of a message and the parts of an operation, as path.py and profile.py found them, beside their papers."""
import json

import page
from figures import plt, svg, table

WAYS = {'udp': 'UDP', 'verbs': 'medge'}
COLOURS = {'out': '#7c3aed', 'send': '#c2410c', 'link': '#a8a29e', 'receive': '#2563eb', 'in': '#0d9488',
           'beside': '#e7e5e4'}
# Zhang, Bhuyan and Feng, "Anatomy of UDP and M-VIA for Cluster Communication", table III: us of a message of one byte, by
# part. What M-VIA's programs take, t1 and t10, is with the system of their side.
ZHANG = {'UDP': {'out': 0.85, 'send': 4.22, 'link': 12.80, 'receive': 11.54, 'in': 6.61},
         'M-VIA': {'out': 0.39, 'send': 1.56, 'link': 13.30, 'receive': 3.51, 'in': 4.34}}
# Their tables I and II, where the text has a figure. The rest depends on the size, and is drawn only.
ZHANG_STEPS = [
    ('UDP', 'system call', 0.85), ('UDP', 'socket send', 0.77), ('UDP', 'UDP send', 0.50), ('UDP', 'device send', 0.73),
    ('UDP', 'NIC DMA receive', 2.24), ('UDP', 'interrupt start', 2.82), ('UDP', 'do_IRQ, softirq, net_rx_action', 2.03),
    ('UDP', 'IP receive', 1.81), ('UDP', 'UDP receive, bottom', 1.17), ('UDP', 'net_rx_action, softirq, interrupt return', 1.23),
    ('UDP', 'polling, on average', 1.10), ('UDP', 'socket receive', 0.26), ('UDP', 'system call return', 0.60),
    ('M-VIA', 'VipPostSend()', 0.06), ('M-VIA', 'fast trap', 0.33), ('M-VIA', 'device send', 1.56),
    ('M-VIA', 'NIC DMA receive', 2.24), ('M-VIA', 'interrupt start', 2.80), ('M-VIA', 'interrupt return', 1.50),
    ('M-VIA', 'VipRecvWait(), polling', 0.04)]
# What the text says of the drawing, figure 3.2.
THESIS = ('MultiEdge, 2008: of messages of 128 KiB over 8 x 1 Gbit/s, copying is 75 % of the CPU time of the sender and 65 % of '
          'the receiver one way, 70 % of each to and fro and two ways; the other shares are drawn in its figure 3.2 only.')
PART_COLOURS = ('#7c3aed', '#a78bfa', '#f59e0b', '#c2410c', '#78716c', '#2563eb', '#93c5fd', '#0d9488', '#15803d', '#d6d3d1')


def read(where):
    """What was measured, of both; {}: nothing."""
    found = {}
    for name in ('path', 'breakdown'):
        if (where / (name + '.json')).exists():
            found[name] = json.loads((where / (name + '.json')).read_text())
    return found


def by_part(steps):
    out = {}
    for step in steps:
        out[step['part']] = out.get(step['part'], 0) + step['instructions']
    return out


def path_rows(path):
    """Part by part, beside the paper's."""
    mine = [by_part(path['ways'][way]['steps']) for way in WAYS]
    columns = [(parts, '%.0f') for parts in mine] + [(parts, '%.2f') for parts in ZHANG.values()]
    wholes = [sum(v for part, v in parts.items() if part != 'beside') for parts, _ in columns]
    works = [whole - parts['link'] for whole, (parts, _) in zip(wholes, columns)]
    for part, what in path['parts'].items():
        yield [what] + [form % parts[part] + ('' if part in ('link', 'beside') else ' (%.0f %%)' % (100 * parts[part] / work))
                        if part in parts else '' for (parts, form), work in zip(columns, works)]
    yield ['all that the receiver waits for'] + [form % whole for whole, (_, form) in zip(wholes, columns)]
    yield ['without the link (100 %)'] + [form % work for work, (_, form) in zip(works, columns)]
    yield ['of UDP\'s', '', '%.2f' % (works[1] / works[0]), '', '%.2f' % (works[3] / works[2])]


PATH_HEAD = ['', 'UDP, instructions', 'medge', 'Zhang: UDP, us', 'M-VIA']


def tracing(way):
    return ('%s: %.0f instructions one way, %.0f there and back; with %.0f tracepoints passed %.0f, %.0f' % (
        WAYS[way[0]], way[1]['one_way'], way[1]['round_trip'], way[1]['events'], way[1]['one_way_traced'],
        way[1]['round_trip_traced']))


def step_rows(path):
    for way, name in WAYS.items():
        for i, s in enumerate(path['ways'][way]['steps'], 1):
            yield [name if i == 1 else '', i, s['step'], s['until'], '%.0f' % s['instructions'],
                   '%.0f .. %.0f' % (s['least'], s['most']), '%.0f' % s['traced']]


def draw_bar(axes, y, segments, unit):
    """@segments: (length, part, label)."""
    at, whole = 0, sum(max(length, 0) for length, _, _ in segments)
    for length, part, label in segments:
        axes.barh(y, length, left=at, color=COLOURS[part], edgecolor='white', lw=0.8, height=0.62,
                  hatch='///' if part == 'beside' else None)
        if length > 0.018 * whole:
            axes.text(at + length / 2, y, label, ha='center', va='center', fontsize=8,
                      color='black' if part in ('beside', 'link') else 'white')
        at += length
    axes.text(at, y, ' %s %s' % (page.number(at), unit), va='center', fontsize=9)


def draw_path(path):
    figure, both = plt.subplots(2, 1, figsize=(12, 5))
    for y, (way, name) in enumerate(WAYS.items()):
        draw_bar(both[0], y, [(s['instructions'], s['part'], str(i))
                              for i, s in enumerate(path['ways'][way]['steps'], 1)], '')
    both[0].set_title('Here, instructions; numbers are those of the table', fontsize=11)
    for y, parts in enumerate(ZHANG.values()):
        draw_bar(both[1], y, [(v, part, '%.2f' % v) for part, v in parts.items()], 'us')
    both[1].set_title('Zhang, Bhuyan, Feng: two Celerons of 400 MHz, Fast Ethernet, us', fontsize=11)
    for axes, names in zip(both, (list(WAYS.values()), list(ZHANG))):
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.spines[['top', 'right']].set_visible(False)
        axes.margins(x=0.08)
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[part]) for part in COLOURS]
    figure.legend(handles, [path['parts'][part] for part in COLOURS], loc='lower center', ncol=3,
                  bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize=9)
    figure.tight_layout()
    return svg(figure)


def shares(operation):
    whole = sum(p['instructions'] for p in operation['parts'].values())
    return whole, {part: 100 * p['instructions'] / whole for part, p in operation['parts'].items()}


def breakdown_rows(breakdown):
    found = [shares(operation) for operation in breakdown['operations'].values()]
    for part, (what, thesis) in breakdown['parts'].items():
        yield [what, thesis] + ['%.1f %%' % share[part] for _, share in found]
    yield ['instructions', ''] + ['%.0f' % whole for whole, _ in found]


def breakdown_head(breakdown):
    return ['', 'the thesis calls it'] + [name.replace('_', ' ') + ' B' for name in breakdown['operations']]


def draw_breakdown(breakdown):
    figure, axes = plt.subplots(figsize=(9, 4.6))
    names = list(breakdown['operations'])
    bottom = [0] * len(names)
    for colour, (part, (what, _)) in zip(PART_COLOURS, breakdown['parts'].items()):
        heights = [shares(operation)[1][part] for operation in breakdown['operations'].values()]
        axes.bar(range(len(names)), heights, 0.55, bottom=bottom, color=colour, edgecolor='white', lw=0.6, label=what)
        for x, (low, height) in enumerate(zip(bottom, heights)):
            if height >= 3:
                axes.text(x, low + height / 2, '%.0f' % height, ha='center', va='center', fontsize=8.5, color='white')
        bottom = [a + b for a, b in zip(bottom, heights)]
    axes.set_xticks(range(len(names)), ['%s\n%s instructions' % (page.size_name(int(name.split('_')[1])), page.number(
        shares(operation)[0])) for name, operation in breakdown['operations'].items()])
    page.tidy(axes, 'One write, both ends', '% of instructions')
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc='center left', bbox_to_anchor=(1, 0.5), frameon=False, fontsize=9)
    return svg(figure)


def sections(found):
    """Of the page."""
    out = []
    if 'path' in found:
        path = found['path']
        out.append(page.section(
            'The way of one byte', 'Debian\'s %s, emulated on one CPU whose clock counts instructions: one is 1 ns of its '
            'time. From the program that calls to the one that has it, which slept until then; medians of %d. Both are '
            'threads on that CPU; the paper\'s receiver polled, and it had a link. What recording an event takes was '
            'measured event by event, and is subtracted. %s.' % (
                path['release'], path['messages'], '. '.join(map(tracing, path['ways'].items()))),
            draw_path(path), table(PATH_HEAD, path_rows(path)),
            table(['', '', 'step', 'until', 'instructions', 'spread', 'as traced'], step_rows(path)),
            '<details><summary>Steps of the paper</summary>' + table(['', 'step', 'us'], ZHANG_STEPS) + '</details>'))
    if 'breakdown' in found:
        out.append(page.section(
            'Where a write\'s instructions go', 'Both ends and all between, on that machine; the event is there when the '
            'program asks for it. Instructions, not time: eight bytes copied are one. ' + THESIS,
            draw_breakdown(found['breakdown']),
            table(breakdown_head(found['breakdown']), breakdown_rows(found['breakdown']))))
    return out


def print_rows(head, rows):
    rows = [head, *map(list, rows)]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(head))]
    for row in rows:
        print('  '.join(str(cell).ljust(width) if i == 0 or not str(cell)[:1].isdigit() and row is not head else
                        str(cell).rjust(width) for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    print()


def print_all(found):
    if 'path' in found:
        print_rows(PATH_HEAD, path_rows(found['path']))
        print_rows(['', '', 'step', 'until', 'instructions', 'spread', 'as traced'], step_rows(found['path']))
        print('\n'.join(map(tracing, found['path']['ways'].items())) + '\n')
    if 'breakdown' in found:
        print_rows(breakdown_head(found['breakdown']), breakdown_rows(found['breakdown']))
