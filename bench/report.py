#!/usr/bin/env python3
"""report.py - tables from results.jsonl (the latest summary of each peer)"""
import json, os, statistics as st, sys
B = os.environ.get('BENCH_HOME') or os.path.expanduser('~/.cache/cru-bench')
S, H = {}, {}
for l in open(f'{B}/results.jsonl'):
    r = json.loads(l)
    if r['what'] == 'summary': S[r['peer']] = r
    elif r['what'] == 'hooks':      # several runs of `hooks` are pooled
        h = H.setdefault(r['peer'], {'off': [], 'on': []}); h['off'] += r['off_all']; h['on'] += r['on_all']
f = lambda x, d=0: '–' if x is None else f'{x:.{d}f}'
KIB = lambda x: '–' if x is None else f'{x/1024:.0f}'
print('| peer | version | `--version` ms | start → 1st request ms | per-turn ms N=20 (p90) | per-turn ms N=200: median; first 10 → last 10 | same, N=1000 | wall N=20 s | wall N=200 s | CPU s N=20 / ms per extra turn | max RSS MB N=20 / N=200 | PSS of tree MB | last answer → exit ms | request KiB first → last (N=20) | foreign CPU cores |')
print('|' + '---|' * 15)
for p, s in sorted(S.items(), key=lambda x: x[1].get('turn_ms_20') or 1e9):
    t = f(s.get('ttfr_ms_20'))
    if s.get('ttfr_main_ms_20') and abs(s['ttfr_main_ms_20'] - s['ttfr_ms_20']) > 5: t += f" ({f(s['ttfr_main_ms_20'])} to the first one with tools)"
    g, g1000 = (f"{f(s['turn_ms' + n],1)}; {f(s['turn_first10' + n],1)} → {f(s['turn_last10' + n],1)}" if s.get('turn_ms' + n) else '–' for n in ('_200', '_1000'))
    pt = f"{f(s.get('turn_ms_20'),1)} ({f(s.get('turn_p90_20'),1)})" if s.get('turn_ms_20') else '– (no tool loop)'
    print(f"| {p} | {s['version']} | {f(s['version_ms'])} | {t} | {pt} | {g} | {g1000} | {f(s['wall_20'],2)} | {f(s.get('wall_200'),1)} | {f(s['cpu_20'],2)} / {f(s.get('cpu_ms_per_turn'),1)} | {f(s['rss_mb_20'])} / {f(s.get('rss_mb_200'))} | {f(s['pss_tree_mb'])} | {f(s['exit_ms_20'])} | {KIB(s.get('body_first_20'))} → {KIB(s.get('body_last_20'))} | {f(s.get('foreign_20'),2)}{'' if s.get('ok20') and s.get('ok200', True) and s.get('ok1000', True) else ' **incomplete**'} |")
print()
import random
random.seed(1)
for h in H.values():
    h['d'] = st.median(h['on']) - st.median(h['off'])
    b = sorted(st.median(random.choices(h['on'], k=len(h['on']))) - st.median(random.choices(h['off'], k=len(h['off']))) for _ in range(4000))
    h['ci'] = (b[100], b[3900])
print('| peer (kind of hook) | per-turn ms without (median of runs) | with one `true` hook | added ms per tool call (95 % bootstrap over runs) | runs each | per-run medians without | with |')
print('|---|---|---|---|---|---|---|')
K = {'opencode': 'in-process plugin that spawns `sh -c true`', 'pi': 'in-process extension that spawns `sh -c true`'}
for p, h in sorted(H.items(), key=lambda x: x[1]['d']):
    print(f"| {p} ({K.get(p, 'command hook')}) | {st.median(h['off']):.1f} | {st.median(h['on']):.1f} | **{h['d']:.1f}** ({h['ci'][0]:.1f} … {h['ci'][1]:.1f}) | {len(h['off'])} | {', '.join(f'{x:.0f}' for x in h['off'])} | {', '.join(f'{x:.0f}' for x in h['on'])} |")
