# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Figures of papers, redrawn with what experiments.py has measured; their text's numbers beside it.

Balaji et al., iWARP with out-of-order communication (2007); Goglin, Open-MX with I/OAT (2008); Ulmer, GRIM (2002).
"""
import page
from experiments import ENGINE, INJECTED, LOCAL, OFFLOADED, OVERLAPPED, PARTS, REORDERED, UNITS
from page import COLOURS, MIB, NAMES, figures, plt, size_name, tidy

KINDS = ['medge', 'rxe', 'siw']


def plotted(boot, axes, kind, tests, fields=None, label=None, scale=1, **how):
    """@tests: (x, test). The median of each, and all repetitions as a band."""
    at, mid, low, high = [], [], [], []
    for (x, test), field in zip(tests, fields or ['value'] * len(tests)):
        values = boot.values(kind, test, field=field)
        if values:
            at.append(x)
            mid.append(boot.median(kind, test, field=field) * scale)
            low.append(min(values) * scale)
            high.append(max(values) * scale)
    if at:
        axes.plot(at, mid, how.pop('style', 'o-'), ms=3.5, lw=1.8, color=COLOURS[kind], label=label or NAMES[kind], **how)
        axes.fill_between(at, low, high, color=COLOURS[kind], alpha=0.15, lw=0)


def axes_row(count, width=5.0):
    figure, rows = plt.subplots(1, count, figsize=(width * count, 3.7), squeeze=False)
    return figure, rows[0]


def finished(figure, axes):
    figure.legend(*axes.get_legend_handles_labels(), loc='lower center', ncol=4, bbox_to_anchor=(0.5, -0.14),
                  frameon=False)
    figure.tight_layout()
    return figures.svg(figure)


def measured(boot, names):
    """Which kinds have any of these tests."""
    return [k for k in KINDS if any((k, n, False) in boot.results for n in names)]


def said(boot, kind, test, form='%.0f %%', field='value', of=1):
    value = boot.median(kind, test, field=field)
    return form % (value / of) if value is not None and of else ''


def beside(boot, rows):
    """@rows: what, what the paper says, {kind: what is here}."""
    kinds = [k for k in KINDS if any(here.get(k) for _, _, here in rows)]
    return figures.table(['', 'the paper', *kinds], [[what, paper] + [here.get(k, '') for k in kinds]
                                                     for what, paper, here in rows]) if kinds else ''


def overlap(boot):
    names = ['overlap %d' % size for size in OVERLAPPED]
    kinds = measured(boot, names)
    if not kinds:
        return []
    figure, row = axes_row(len(OVERLAPPED))
    at = [float(part) for part in PARTS]
    fine = [x / 50 for x in range(201)]
    for axes, size, name in zip(row, OVERLAPPED, names):
        for kind in kinds:
            plotted(boot, axes, kind, [(x, name) for x in at], ['kept ' + part for part in PARTS])
        axes.plot(fine, [100 / max(1, x) for x in fine], 'k--', lw=1, label='all overlapped')
        axes.plot(fine, [100 / (1 + x) for x in fine], 'k:', lw=1, label='nothing overlapped')
        axes.set_ylim(0)
        tidy(axes, 'Writes of %s' % size_name(size), '% of the bandwidth', 'computation, by the time of a transfer')
    rows = [['%s, computation of a transfer\'s time' % size_name(size), 'none of host-assisted' if size > 4096 else '',
             {k: said(boot, k, name, '%.0f %% overlapped', 'overlapped 1') for k in kinds}]
            for size, name in zip(OVERLAPPED, names)]
    return [finished(figure, row[0]), beside(boot, rows)]


def iso_surface(boot):
    names = ['isosurface %d' % unit for unit in UNITS]
    kinds = measured(boot, names)
    if not kinds:
        return []
    groups = {'units of ' + size_name(unit): page.by_kind(boot, name, kinds) for unit, name in zip(UNITS, names)}
    rows = [['units of %s: the pipeline by its extraction alone' % size_name(unit), 'no figures',
             {k: '%.2f' % (boot.median(k, name) / boot.median(k, name, field='alone'))
              for k in kinds if boot.median(k, name)}] for unit, name in zip(UNITS, names)]
    return [page.draw_bars(groups, 'ms', 'A volume of 28 MiB'), beside(boot, rows)]


def out_of_order(boot):
    names = ['reordered %d' % percent for percent in REORDERED]
    kinds = measured(boot, names)
    if not kinds:
        return []
    groups = {'%d %%' % percent: page.by_kind(boot, name, kinds) for percent, name in zip(REORDERED, names)}
    rows = [['%d %% reordered, of the bandwidth without' % percent, '',
             {k: said(boot, k, name, of=(boot.median(k, names[0]) or 0) / 100) for k in kinds}]
            for percent, name in zip(REORDERED[1:], names[1:])]
    return [page.draw_bars(groups, 'MB/s', 'Writes of 64 KiB by frames reordered'), beside(boot, rows)]


def local(boot):
    def tests(how):
        return [(size, ' '.join(['local', str(size)] + [how] * bool(how))) for size in LOCAL]
    lines = [(kind, how) for kind, how in (('medge', 'copy'), ('medge', 'frames'), ('rxe', ''), ('siw', ''))
             if any((kind, name, False) in boot.results for _, name in tests(how))]
    if not lines:
        return []
    figure, (axes,) = axes_row(1, 7)
    for kind, how in lines:
        plotted(boot, axes, kind, tests(how), label=' '.join([kind, how]), style='s--' if how == 'frames' else 'o-')
    memcpy = boot.median('bare', 'memcpy')
    if memcpy:
        axes.axhline(memcpy, color='#444444', ls='--', lw=1.2, label='memcpy, in cache')
    axes.set_xscale('log', base=2)
    axes.set_yscale('log')
    axes.set_xticks(LOCAL, [size_name(size) for size in LOCAL])
    tidy(axes, 'Writes between QPs of one device', 'MB/s', 'bytes')
    rows = [['%s, of memcpy in cache' % size_name(size), paper,
             {kind: said(boot, kind, dict(tests(how))[size], '%.0f %%', of=memcpy / 100)
              for kind, how in lines if how != 'frames'}] for size, paper in ((65536, '50 %'), (MIB, ''))] if memcpy else []
    rows.append(['4M of 64K', '20 % without a shared cache',
                 {kind: said(boot, kind, dict(tests(how))[4 * MIB], '%.0f %%',
                             of=(boot.median(kind, dict(tests(how))[65536]) or 0) / 100)
                  for kind, how in lines if how != 'frames'}])
    return [finished(figure, axes), beside(boot, rows)]


def injection(boot):
    kinds = measured(boot, ['injection'])
    if not kinds:
        return []
    figure, row = axes_row(len(kinds), 4.2)
    rows = [['the program\'s own copy is faster', 'up to 10 KB (32 bit PCI)', {}]]
    rows += [['%d B, inline by reference' % size, '', {}] for size in INJECTED]
    for axes, kind in zip(row, kinds):
        # What a device does not take inline is 0.
        taken = [size for size in INJECTED if boot.median(kind, 'injection', field='program %d' % size)]
        for who, label, style, sizes in (('program', 'inline', 'o-', taken), ('kernel', 'by reference', 's--', INJECTED)):
            plotted(boot, axes, kind, [(size, 'injection') for size in sizes], ['%s %d' % (who, size) for size in sizes],
                    label=label, style=style, scale=1e-3)
        axes.set_xscale('log', base=2)
        axes.set_xticks(INJECTED, [str(size) for size in INJECTED])
        axes.set_ylim(0)
        tidy(axes, NAMES[kind], '1000 messages/s', 'bytes')
        ratio = {size: boot.median(kind, 'injection', field='program %d' % size) /
                 boot.median(kind, 'injection', field='kernel %d' % size) for size in taken}
        # Less tells nothing.
        faster = [size for size in taken if ratio[size] > 1.05]
        rows[0][2][kind] = 'up to %d B' % max(faster) if faster else 'never'
        for one, size in zip(rows[1:], INJECTED):
            one[2][kind] = '%.2f' % ratio[size] if size in ratio else ''
    return [finished(figure, row[0]), beside(boot, rows)]


def offload(boot):
    if not measured(boot, ['engine']):
        return []
    figure, (times, speeds) = axes_row(2)
    for who, label, style in (('cpu', 'the CPU copies', 'o-'), ('handed', 'the CPU hands over', 's--'),
                              ('engine', 'until the engine has copied', '^:')):
        plotted(boot, times, 'medge', [(size, 'engine') for size in ENGINE], ['%s %d' % (who, size) for size in ENGINE],
                label=label, style=style)
    times.set_xscale('log', base=2)
    times.set_yscale('log')
    times.set_xticks(ENGINE, [size_name(size) for size in ENGINE])
    tidy(times, 'One copy of several', 'ns', 'bytes')
    times.legend(frameon=False, fontsize=8)
    for who, style in (('cpu', 'o-'), ('engine', '^:')):
        plotted(boot, speeds, 'medge', [(size, 'copied by the %s %d' % (who, size)) for size in OFFLOADED],
                label='by the ' + who.replace('cpu', 'CPU'), style=style)
    speeds.set_xscale('log', base=2)
    speeds.set_xticks(OFFLOADED, [size_name(size) for size in OFFLOADED])
    speeds.set_ylim(0)
    tidy(speeds, 'Writes', 'MB/s', 'bytes')
    speeds.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    took = {who: {size: boot.median('medge', 'engine', field='%s %d' % (who, size)) for size in ENGINE}
            for who in ('cpu', 'handed', 'engine')}
    slower = [size for size in ENGINE if took['engine'][size] > took['cpu'][size]]
    faster = [size for size in ENGINE if not slower or size > max(slower)]
    rows = [['the engine is no slower', 'from 1 KiB of a frame, 64 KiB of a message on',
             {'medge': 'from %s on' % size_name(min(faster)) if faster else 'never, so auto takes none'}],
            ['to hand over 64K, of what it takes the CPU to copy it', 'down to 60 % of the CPU for all',
             {'medge': '%.0f %%' % (100 * took['handed'][65536] / took['cpu'][65536])}]]
    for size, paper in zip(OFFLOADED, ('', 'up to +50 %', 'up to +50 %')):
        cpu, other = (boot.median('medge', 'copied by the %s %d' % (who, size)) for who in ('cpu', 'engine'))
        if cpu and other:
            rows.append(['writes of %s' % size_name(size), paper, {'medge': '%+.0f %%' % (100 * (other / cpu - 1))}])
    return [figures.svg(figure), beside(boot, rows)]


def sections(boots):
    return [part for boot in [b for b in boots if b.set == 'papers'][:1] for part in (
        page.section('Computation beside communication', 'Balaji et al., figure 14: a window of 8 writes, a computation before '
                     'each. A host that helps its card (host-assisted iWARP, 6 Gbit/s) lost to one that leaves all to the '
                     'card (3.5 Gbit/s) from 128 us before each 128 KiB on: at 58 % of its bandwidth, which is what is left '
                     'where nothing overlaps. Here there is no card: what overlaps is done by the other CPU. Below 0, the '
                     'two took longer together than one after the other.', *overlap(boot)),
        page.section('Iso-surface', 'Balaji et al., figure 16: a volume is read on one node and searched for a surface on the '
                     'other, in units of work. Of theirs, host-assisted iWARP was the fastest with units of 8 KiB and '
                     'host-offloaded with 1 MiB. Here each end has one of the two CPUs, and sleeps while it waits.',
                     *iso_surface(boot)),
        page.section('Out of order', 'One rail with a delay of 200 us, which so many of the frames do not take, both ways. '
                     'Balaji et al. ask for it: iWARP cards of their time dropped what came out of order, as InfiniBand does; '
                     'MultiEdge places it where it belongs. Neither has figures. Within one rail, frames that are overtaken '
                     'may be taken for lost, and sent again.', *out_of_order(boot)),
        page.section('One host', 'Open-MX, figure 10: one copy from process to process reached 6 GiB/s in a shared cache, of '
                     'memcpy\'s 12, and 1.2 GiB/s beyond it. medge by a copy, and by frames; peers to themselves.',
                     *local(boot)),
        page.section('Copies by an engine', 'Open-MX, figures 7 to 9: I/OAT copies what has come while the CPU takes the next '
                     'frames. Here is no such hardware: the engine is a thread of the tests\', with a descriptor for each page, '
                     'which says nothing of how fast a real one is. What is real is all else: the threshold, measured when '
                     'the channel is taken, and what is left to the CPU.', *offload(boot)),
        page.section('Injection', 'GRIM, figures 5.2 and 5.3: who brings a small message to the card, the CPU or DMA? The CPU '
                     'was faster up to 10 KB on a bus of 32 bit, and DMA (213 MB/s to 53) on one of 64. Here: data in the ring, '
                     'copied there by the program, or read by the kernel where the program has it; lists of 32.',
                     *injection(boot)))]
