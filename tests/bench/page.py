# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The bench's page: all of it in one file, plots too."""
import html
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'lab'))
import figures  # noqa: E402
import floors  # noqa: E402
from figures import plt  # noqa: E402

MIB = 1048576
NAMES = {'medge': 'medge', 'siw': 'siw', 'rxe': 'rxe', 'tcp': 'one TCP stream', 'bare': 'bare frames, no protocol'}
COLOURS = {'medge': '#c2410c', 'siw': '#2563eb', 'rxe': '#0d9488', 'tcp': '#7c3aed', 'bare': '#444444'}
# MultiEdge, 2008: share of nominal one way, by links of 1 Gbit/s.
MULTIEDGE = {1: 99.2, 2: 99.2, 8: 65}
STYLE = '''
:root { color-scheme: light }
body { font: 16px/1.55 system-ui, sans-serif; color: #1c1917; max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.5rem 5rem }
h1 { font-size: 2.1rem; margin: 0 } h2 { margin: 3rem 0 .3rem; font-size: 1.35rem }
p.sub { color: #57534e; margin: .3rem 0 1.5rem } p.note { color: #57534e; font-size: .92rem; margin: .2rem 0 .8rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem }
th { text-align: left; color: #57534e; font-weight: 600; border-bottom: 2px solid #d6d3d1; padding: .35rem .6rem }
td { border-bottom: 1px solid #e7e5e4; padding: .3rem .6rem } td.n, th.n { text-align: right }
.ok { color: #15803d; font-weight: 600 } .short { color: #b91c1c; font-weight: 600 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; font-size: .92rem } dt { color: #57534e } dd { margin: 0 }
svg { max-width: 100%; height: auto; display: block; margin: .5rem auto }
'''


def size_name(size):
    for unit, name in ((MIB, 'M'), (1024, 'K')):
        if size >= unit:
            return '%d%s' % (size // unit, name)
    return str(size)


def tidy(axes, title, unit, xlabel=None):
    axes.set_title(title, fontsize=11)
    axes.set_ylabel(unit)
    if xlabel:
        axes.set_xlabel(xlabel)
    axes.grid(axis='y', alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)


def line(axes, boot, kind, points, cut=False, field='value', scale=None):
    """@points: (x, test). The median, and all repetitions as a band."""
    at, mid, low, high = [], [], [], []
    for x, test in points:
        values = boot.values(kind, test, cut, field)
        if values:
            factor = scale(x, boot.results[kind, test, cut]['unit']) if scale else 1
            at.append(x)
            mid.append(boot.median(kind, test, cut, field) * factor)
            low.append(min(values) * factor)
            high.append(max(values) * factor)
    if at:
        axes.plot(at, mid, 'o-', ms=3.5, lw=1.8, color=COLOURS[kind], label=NAMES[kind])
        axes.fill_between(at, low, high, color=COLOURS[kind], alpha=0.15, lw=0)
    return bool(at)


def bytes_per_second(size, unit):
    return size / 1e6 if unit == 'messages/s' else 1


def sized(boot, tool, rest=''):
    """The tests of @tool by size."""
    found = set()
    for _kind, test, _cut in boot.results:
        words = test.split(' ', 2)
        if words[0] == tool and (words[2] if len(words) > 2 else '') == rest and words[1].isdigit():
            found.add((int(words[1]), test))
    return sorted(found)


def draw_ratios(verdicts):
    shown = [v for v in verdicts if v['sense'] == '>='][::-1]
    figure, axes = plt.subplots(figsize=(10, 0.36 * len(shown) + 1))
    for y, v in enumerate(shown):
        share = v['ratio'] / v['floor']
        axes.barh(y, share, color='#15803d' if v['pass'] else '#b91c1c', height=0.62)
        axes.plot([v['low'] / v['floor'], v['high'] / v['floor']], [y, y], color='black', lw=1)
        axes.text(max(share, v['high'] / v['floor']) * 1.03, y, '%.3g x %s' % (v['ratio'], v['against']),
                  va='center', fontsize=8.5)
    axes.axvline(1, color='black', lw=1.2)
    axes.set_xscale('log')
    axes.set_xlim(0.3, max(v['high'] / v['floor'] for v in shown) * 2.4)
    axes.set_yticks(range(len(shown)), [v['label'] for v in shown], fontsize=9)
    axes.set_xlabel('times the floor (black line: enough)')
    axes.spines[['top', 'right']].set_visible(False)
    return figures.svg(figure)


def draw_sizes(boot, tools):
    """A plot for each of (title, tool, rest, cut)."""
    def measured(tool):
        return [n for _, n in sized(boot, tool[1], tool[2]) if any((k, n, tool[3]) in boot.results
                                                                   for k in boot.data['peers'])]
    drawn = [t for t in tools if len(measured(t)) > 1]
    if not drawn:
        return ''
    figure, all_axes = plt.subplots(1, len(drawn), figsize=(5.2 * len(drawn), 3.9), squeeze=False)
    for axes, (title, tool, rest, cut) in zip(all_axes[0], drawn):
        points = sized(boot, tool, rest)
        for kind in boot.data['peers']:
            line(axes, boot, kind, points, cut, scale=bytes_per_second)
        for kind in ('tcp', 'bare'):
            limit = boot.median(kind, 'write_bw %d' % MIB + (' ' + rest if rest else ''), cut)
            if limit:
                axes.axhline(limit, color=COLOURS[kind], ls='--', lw=1.2, label=NAMES[kind])
        axes.set_xscale('log', base=2)
        axes.set_yscale('log')
        shown = [s for s, n in points if any((k, n, cut) in boot.results for k in boot.data['peers'])]
        axes.set_xticks(shown, [size_name(s) for s in shown], rotation=60, fontsize=8)
        tidy(axes, title, 'MB/s', 'bytes')
    figure.legend(*all_axes[0][0].get_legend_handles_labels(), loc='lower center', ncol=5,
                  bbox_to_anchor=(0.5, -0.1), frameon=False)
    figure.tight_layout()
    return figures.svg(figure)


def draw_latency(boot):
    tools = [t for t in ('write_lat', 'read_lat', 'send_lat') if len(sized(boot, t)) > 1]
    if not tools:
        return ''
    figure, all_axes = plt.subplots(1, len(tools), figsize=(4.6 * len(tools), 3.6), squeeze=False)
    for axes, tool in zip(all_axes[0], tools):
        for kind in boot.data['peers']:
            line(axes, boot, kind, sized(boot, tool))
        axes.set_xscale('log', base=2)
        axes.set_xticks([s for s, _ in sized(boot, tool)], [size_name(s) for s, _ in sized(boot, tool)])
        axes.set_ylim(0)
        tidy(axes, tool.replace('_lat', ', typical'), 'us', 'bytes')
    figure.legend(*all_axes[0][0].get_legend_handles_labels(), loc='lower center', ncol=4,
                  bbox_to_anchor=(0.5, -0.08), frameon=False)
    figure.tight_layout()
    return figures.svg(figure)


def latency_table(boot):
    rows = []
    for _, test in sized(boot, 'write_lat') + sized(boot, 'read_lat') + sized(boot, 'send_lat'):
        for kind in boot.data['peers']:
            if (kind, test, False) in boot.results:
                rows.append([test.replace('_lat', '') + ' B', kind] +
                            ['%.1f' % boot.median(kind, test, field=f) for f in ('value', 'mean', 'p99', 'p99.9', 'max')])
    return figures.table(['', '', 'typical, us', 'mean', 'p99', 'p99.9', 'worst'], rows) if rows else ''


def paint(axes, colours):
    """A colour for each series of bars."""
    for container, colour in zip(axes.containers, colours):
        for bar in container:
            bar.set_color(colour)


def draw_bars(groups, unit, title):
    """@groups: {group: {kind: value}}."""
    kinds = [k for k in COLOURS if any(k in g for g in groups.values())]
    if not kinds:
        return ''
    figure, axes = plt.subplots(figsize=(9, 3.6))
    figures.bars(axes, list(groups), [NAMES[k] for k in kinds],
                 {(NAMES[k], g): v[k] for g, v in groups.items() for k in kinds if k in v}, unit)
    paint(axes, [COLOURS[k] for k in kinds])
    tidy(axes, title, unit)
    axes.legend(frameon=False, fontsize=9)
    return figures.svg(figure)


def by_kind(boot, test, kinds=tuple(COLOURS)):
    return {k: boot.median(k, test) for k in kinds if boot.median(k, test)}


def draw_rails(boots):
    test = 'write_bw %d' % MIB
    groups = {}
    for boot in boots:
        where = boot.where
        if where['mtu'] == '9000' and where['kernel'] == 'lab' and not where['rate'] and not where['netem']:
            values = by_kind(boot, test)
            if values:
                groups['%s rail%s' % (where['rails'], '' if where['rails'] == '1' else 's')] = values
    return draw_bars(groups, 'MB/s', 'Writes of 1 MiB over rails without a rate') if len(groups) > 1 else ''


def draw_shaped(boots):
    """Share of nominal, beside bare superframes and MultiEdge."""
    rows = []
    for boot in boots:
        rate = boot.where['rate']
        if rate.endswith('gbit') and boot.set == 'shaped':
            nominal = float(rate[:-4]) * 125 * int(boot.where['rails'])
            values = by_kind(boot, 'write_bw %d' % MIB)
            if rate == '1gbit':
                rows.append((int(boot.where['rails']), {k: 100 * v / nominal for k, v in values.items()}))
    if not rows:
        return ''
    figure, axes = plt.subplots(figsize=(9, 3.6))
    groups = [n for n, _ in rows]
    names = {**NAMES, 'paper': 'MultiEdge (2008), its paper'}
    values = {(names[k], n): v for n, shares in rows for k, v in shares.items()}
    values.update({(names['paper'], n): MULTIEDGE[n] for n in groups if n in MULTIEDGE})
    shown = [k for k, name in names.items() if any((name, n) in values for n in groups)]
    figures.bars(axes, groups, [names[k] for k in shown], values, '% of nominal')
    paint(axes, [COLOURS.get(k, '#d6d3d1') for k in shown])
    tidy(axes, 'Rails of 1 Gbit/s each, writes of 1 MiB', '% of nominal', 'rails')
    axes.set_ylim(0, 110)
    axes.legend(frameon=False, fontsize=9, loc='lower left')
    return figures.svg(figure)


def draw_qps(boot):
    out = []
    for size in (4096, 65536):
        groups = {}
        for qps in (1, 4, 16, 64):
            values = by_kind(boot, 'write_bw %d' % size + (' -q %d' % qps if qps > 1 else ''), ('medge', 'rxe', 'siw'))
            if values:
                groups['%d QP%s' % (qps, 's' if qps > 1 else '')] = values
        if len(groups) > 1:
            out.append(draw_bars(groups, 'MB/s', 'Writes of %s by QPs' % size_name(size)))
    return ''.join(out)


def papers_table(boots):
    """What the papers say, and what was measured here."""
    rows = []
    test = 'write_bw %d' % MIB
    for boot in boots:
        where = boot.where
        if boot.set == 'shaped' and boot.median('medge', test):
            rails, gbit = int(where['rails']), float(where['rate'][:-4])
            said = '%.1f %%' % MULTIEDGE[rails] if gbit == 1 and rails in MULTIEDGE else '66 %' if gbit == 10 else None
            if said:
                share = {k: '%.1f %%' % (100 * v / (rails * gbit * 125)) for k, v in by_kind(boot, test).items()}
                rows.append(['MultiEdge: share of nominal, %d x %g Gbit/s' % (rails, gbit), said, share['medge'],
                             'bare frames: ' + share.get('bare', 'not measured')])
    for size in (4096, 65536):
        for way, said in (('', '+38 %'), (' -b', '+25 %')):
            name = 'write_bw %d%s polling=' % (size, way)
            for boot in boots:
                ratios = boot.ratios(('medge', name + 'all', False), ('medge', name + 'off', False))
                if ratios:
                    rows.append(['MultiEdge: polling instead of interrupts, %s' % ('two ways' if way else 'one way'), said,
                                 '%+.0f %%' % (100 * statistics.median(ratios) - 100), 'writes of ' + size_name(size)])
    for boot in boots:
        latency = boot.median('medge', 'write_lat 4')
        if latency and boot.where['mtu'] == '9000' and not boot.where['netem']:
            rows.append(['MultiEdge: one way latency of a small write', '23 us', '%.1f us' % latency, boot.where['release'] +
                         (', User-Mode Linux' if boot.where['kernel'] == 'lab' else ', QEMU')])
    return figures.table(['what', 'the paper', 'here', ''], rows) if rows else ''


def number(value, digits=4):
    """As people write it: 541,100 and not 5.411e+05."""
    value = float('%.*g' % (digits, value))
    return '{:,.0f}'.format(value) if abs(value) >= 1000 else '%.*g' % (digits, value)


def floors_table(verdicts):
    def cell(text, kind=''):
        return '<td class="%s">%s</td>' % (kind, html.escape(text))
    rows, last = [], None
    for v in verdicts:
        rows.append('<tr>' + cell(v['label'] if v['label'] != last else '') +
                    cell('%s %s' % (number(v['ours']), v['unit']), 'n') + cell(v['against']) + cell(number(v['theirs']), 'n') +
                    cell(number(v['ratio'], 3), 'n') + cell('%s .. %s' % (number(v['low'], 3), number(v['high'], 3)), 'n') +
                    cell('%s %g' % ('≥' if v['sense'] == '>=' else '≤', v['floor']), 'n') +
                    cell('pass' if v['pass'] else 'short', 'ok' if v['pass'] else 'short') + '</tr>')
        last = v['label']
    head = ''.join('<th class="%s">%s</th>' % (k, t) for t, k in (
        ('figure', ''), ('medge', 'n'), ('against', ''), ('theirs', 'n'), ('ratio', 'n'), ('spread', 'n'), ('floor', 'n'), ('', '')))
    return '<table><tr>' + head + '</tr>' + ''.join(rows) + '</table>'


def all_table(boots):
    """Every median, for who does not trust plots."""
    rows = []
    for boot in boots:
        w = boot.where
        name = '%s rail%s, MTU %s%s%s, %s' % (w['rails'], '' if w['rails'] == '1' else 's', w['mtu'],
                                            ', ' + w['rate'] if w['rate'] else '', ', ' + w['netem'] if w['netem'] else '',
                                            w['release'])
        for (kind, test, cut), result in sorted(boot.results.items(), key=lambda kv: (kv[0][1], kv[0][2], kv[0][0])):
            values = boot.values(kind, test, cut)
            rows.append([name, test + (', cut' if cut else ''), kind, number(boot.median(kind, test, cut), 5),
                         '%s .. %s' % (number(min(values), 5), number(max(values), 5)), len(values), result['unit']])
    return figures.table(['where', 'what', 'who', 'median', 'spread', 'repetitions', ''], rows)


def section(title, note, *drawn):
    if not any(drawn):
        return ''
    return '<h2>%s</h2><p class="note">%s</p>%s' % (html.escape(title), html.escape(note), ''.join(drawn))


def measured_on(machine, boots):
    items = {'Processor': '%s, %s CPUs' % (machine['cpu'], machine['cpus']),
             'Apart': floors.cpus_apart(boots), 'Host': machine['host'],
             'Guests': ', '.join(sorted({b.where['release'] + (' (User-Mode Linux)' if b.where['kernel'] == 'lab' else
                                                             ' (QEMU, emulated)') for b in boots})),
             'MTU': ', '.join(sorted({b.where['mtu'] for b in boots}, key=int)), 'medge': machine['commit'],
             'Date': machine['date'],
             'How': 'perftest with the series in perftest-patches, iperf3 and a kernel module of bare frames, in one boot '
                    'each, in turns; medians of all repetitions, bands and brackets are all of them; figures of User-Mode '
                    'Linux compare, and are of no real machine; its kernel has the patches in tests/lab/kernel, by which, '
                    'for all alike, to switch interrupts off takes no system call, and CPUs stay where they are'}
    return '<dl>' + ''.join('<dt>%s</dt><dd>%s</dd>' % (k, html.escape(v)) for k, v in items.items() if v) + '</dl>'


def make(machine, boots, verdicts, more=()):
    """@more: sections that others have drawn."""
    base = [b for b in boots if b.where['mtu'] == '9000' and b.where['rails'] == '1' and b.where['kernel'] == 'lab']
    small = [b for b in boots if b.where['mtu'] == '1500']
    emulated = [b for b in boots if b.where['kernel'] != 'lab']
    lossy = [b for b in boots if b.where['netem']]
    kinds = (('write', 'write_bw', '', False), ('write, every frame cut', 'write_bw', '', True), ('write, two ways', 'write_bw', '-b', False))
    parts = ['<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
             '<title>medge: bench</title><style>%s</style>' % STYLE, '<h1>medge, side by side</h1>',
             '<p class="sub">%d of %d figures reach their floor</p>' % (
                 sum(v['pass'] for v in verdicts), len(verdicts)) if verdicts else '',
             measured_on(machine, boots)]
    if any(v['sense'] == '>=' for v in verdicts):
        parts.append(section('Floors', 'Each bar is a ratio of two figures measured in turns, as a multiple of what is asked of it.',
                             draw_ratios(verdicts), floors_table(verdicts)))
    for boot in base[:1]:
        parts.append(section('Throughput, MTU 9000', 'One rail. Cut: the port takes no superframe, so each is cut in front of it.',
                             draw_sizes(boot, kinds)))
        parts.append(section('Reads and sends', 'One rail, MTU 9000.', draw_sizes(
            boot, (('read', 'read_bw', '', False), ('send', 'send_bw', '', False)))))
    for boot in small[:1]:
        parts.append(section('Throughput, MTU 1500', 'One rail.', draw_sizes(boot, kinds[:2])))
    parts.append(section('Rails', 'Unmodified peers and TCP over the same bond, balance-rr.', draw_rails(boots), draw_shaped(boots)))
    for boot in base[:1]:
        parts.append(section('Many connections', 'One rail, MTU 9000.', draw_qps(boot)))
        test = 'cpu send %d' % MIB
        # The quick bench asks nobody but TCP, on whose way it lies.
        parts.append(section('CPU per byte', 'CPU time of both nodes, sleeping until there is a completion.', draw_bars(
            {'writes of 1 MiB': by_kind(boot, test)}, 'us of CPU per MB', '') if len(by_kind(boot, test)) > 1 else ''))
        parts.append(section('Latency, User-Mode Linux', 'A system call is dear there: compare only.', draw_latency(boot)))
    for boot in emulated[:1]:
        parts.append(section('Latency, ' + boot.where['release'], 'Debian\'s own kernel, two emulated CPUs.', latency_table(boot)))
    parts.append(section('Beside the papers', 'MultiEdge ran on hosts of 2007 with real links: shares compare, times do not. '
                         'Schedulers, fences and congestion control: lab figures.', papers_table(boots)))
    parts.extend(more)
    for boot in lossy[:1]:
        groups = {t.split()[0].replace('_bw', ' ') + size_name(int(t.split()[1])): by_kind(boot, t)
                  for t in ('write_bw 65536', 'write_bw %d' % MIB, 'read_bw %d' % MIB) if by_kind(boot, t)}
        parts.append(section('With loss', 'Two rails, each with ' + boot.where['netem'] + ', both ways.', draw_bars(groups, 'MB/s', '')))
    failures = [[f['type'], f['test'] + (', cut' if f['cut'] else ''), f['why']] for b in boots for f in b.data['failures']]
    if failures:
        parts.append(section('What could not be measured', 'After several tries.', figures.table(['who', 'what', 'why'], failures)))
    if boots:
        parts.append('<details><summary>Every figure</summary>' + all_table(boots) + '</details>')
    return '\n'.join(p for p in parts if p) + '</html>'
