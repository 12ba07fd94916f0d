#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Pages of made-up figures: of every boot of lab bench, every test that is asked of anybody; and of less than that, as
when something could not be measured. Whoever has measured for an hour wants to see it.
"""
import contextlib
import io
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from unittest.mock import MagicMock

BENCH = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH))
import floors  # noqa: E402
import measure  # noqa: E402
import page  # noqa: E402
import papers  # noqa: E402
import report  # noqa: E402

MACHINE = {'cpu': 'none', 'cpus': '2', 'host': 'none', 'date': 'never', 'commit': 'none'}
# Of bench.sh, what each level boots, a line each.
PLAN = '''
	REPO=$1
	. "$REPO/tests/lab/bench.sh"
	bench_boot() { printf '%s\t' "${BENCH_PEERS:-medge rxe siw}" "$@"; echo; }
	bench_path() { :; }
	"bench_$2"
'''


def plan(level):
    done = subprocess.run(['bash', '-ec', PLAN, 'plan', BENCH.parent.parent, level], capture_output=True, text=True, check=True)
    return [line.rstrip('\t').split('\t') for line in done.stdout.splitlines()]


def made_up(peers, which, repetitions, _seconds, *options):
    """What measure.py would write of such a boot."""
    where = {'rails': '2', 'mtu': '9000', 'rate': '', 'netem': '', 'kernel': 'lab', 'cpus': '2', 'release': '7.0'}
    where.update(zip((name[2:] for name in options[::2]), options[1::2]))
    results, failures = {}, []
    for cut in (False, True):
        for kind, tests in measure.asked(which, peers.split(), cut, 'bare' if where['kernel'] == 'lab' else None).items():
            for test in tests:
                results[kind, test.name(), cut] = {
                    'type': kind, 'test': test.name(), 'unit': test.unit(), 'cut': cut,
                    'values': [{field: random.uniform(1, 1000) for field in getattr(test, 'fields', ['value'])}
                               for _ in range(int(repetitions))]}
                failures = [{'type': kind, 'test': test.name(), 'cut': cut, 'why': 'nothing is measured here'}]
    return {'set': which, 'where': where, 'peers': peers.split(), 'results': list(results.values()), 'failures': failures}


def only(boots, wanted):
    return [{**boot, 'results': [r for r in boot['results'] if wanted(r)]} for boot in boots]


def subplots(_rows=1, columns=1, squeeze=True, **_how):
    row = [MagicMock() for _ in range(columns)]
    return MagicMock(), [row] if not squeeze else row[0] if columns == 1 else row


def drawn(boots):
    parsed = [floors.Boot(boot) for boot in boots]
    return page.make(MACHINE, parsed, floors.judged(parsed), papers.sections(parsed))


def whole(boots):
    """As lab bench does it."""
    with tempfile.TemporaryDirectory() as name:
        for number, boot in enumerate(boots):
            (pathlib.Path(name) / ('boot-%02d.json' % number)).write_text(json.dumps(boot))
        (pathlib.Path(name) / 'machine.json').write_text(json.dumps(MACHINE))
        sys.argv[1:] = [name]
        with contextlib.redirect_stdout(io.StringIO()):
            report.main()
        return (pathlib.Path(name) / 'bench.html').read_text()


def main():
    random.seed(1)
    full, quick, tiny = ([made_up(*boot) for boot in plan(level)] for level in ('full', 'quick', 'tiny'))
    # To write them takes most of the time, and lab bench tiny does it.
    page.figures.svg = lambda figure: page.plt.close(figure) or '<svg></svg>'
    html = whole(full)
    sources = ''.join((BENCH / name).read_text() for name in ('page.py', 'papers.py'))
    missing = [title for title in re.findall(r"section\('([^']+)'", sources) if '<h2>' + title not in html]
    if missing:
        sys.exit('FAIL: not on the page, though everything was measured: ' + ', '.join(missing))
    page.plt.subplots = subplots
    for boots in [quick, tiny] + [[boot] for boot in full]:
        drawn(boots)
    for missing in page.COLOURS:
        drawn(only(full, lambda r, missing=missing: r['type'] != missing))
    for share in (0.5, 0.1, 0):
        drawn(only(full, lambda _, share=share: random.random() < share))


if __name__ == '__main__':
    main()
