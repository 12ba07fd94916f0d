# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whose work an instruction is, in parts such as MultiEdge's thesis has."""
import functools
import re

# In the order of the way out and in; and what the thesis calls it.
PARTS = {'user': ('program, provider', ''), 'call': ('system calls, uverbs', ''),
         'translate': ('send: translation, copy', 'TxCopy/Translate'), 'protocol': ('medge\'s protocol', 'Packet'),
         'memory': ('memory management', 'Packet'), 'network': ('network stack', 'Device'),
         'device': ('veth, bonding', 'Device'), 'interrupt': ('softirqs, timers, wakeups, scheduler', 'Poll/IRQ'),
         'place': ('receive: translation, copy', 'RxCopy'), 'other': ('other', '')}
MODULES = {'medge': 'protocol', 'ib_uverbs': 'call', 'ib_core': 'call', 'veth': 'device', 'bonding': 'device'}
# Those that begin a part; all others work for who has called them.
MEDGE = (('place', re.compile(r'medge_place_|place_|write_piece|medge_op_target')),
         ('translate', re.compile(r'medge_(walk|mr|key)_|add_payload|attach_pages')))
CORE = (
    ('call', re.compile(r'entry_SYSCALL|do_syscall_64|ksys_|vfs_')),
    ('interrupt', re.compile(r'asm_|common_interrupt|sysvec_|irq_|do_softirq|__do_softirq|handle_softirqs|'
                             r'(__)?schedule|try_to_wake_up|__wake_up|wake_up_|do_idle|default_idle|mod_timer|'
                             r'add_timer|hrtimer_|tick_|run_timer|finish_task_switch|finish_wait|prepare_to_wait')),
    ('network', re.compile(r'__dev_queue_xmit|dev_|netif_|__netif_|net_rx_|process_backlog|__napi_|napi_|enqueue_to_backlog|'
                           r'skb_|__skb|___skb|(__)?alloc_skb|__?(k|dev_k)?free_skb|consume_skb|(__)?build_skb|eth_')),
    ('memory', re.compile(r'(__)?k[vmz]*alloc|k[vmz]*free|kmem_|(__)?page_frag_|(__)?alloc_(frozen_)?page|__?free_|put_page|'
                          r'(__)?folio_put')),
)


def begun(patterns, name):
    return next((part for part, pattern in patterns if pattern.match(name)), None)


@functools.lru_cache(maxsize=None)
def part_of(name, module, within):
    """Of PARTS, for a function that is called from the part @within."""
    if module == 'medge':
        if within == 'place':
            return within
        return begun(MEDGE, name) or (within if within == 'translate' else 'protocol')
    return MODULES.get(module) or begun(CORE, name) or within
