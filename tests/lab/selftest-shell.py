#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A person at `lab shell`: types, interrupts a command, leaves. Prints what was on the screen if that fails."""
import os
import pty
import select
import sys
import time

lab = os.path.join(os.path.dirname(os.path.realpath(__file__)), "lab")
child, terminal = pty.fork()
if child == 0:
    os.execv(lab, [lab, "shell", "--type", "rxe", "--rails", "1"])

screen = b""


def wait_for(text):
    global screen
    give_up = time.monotonic() + 90
    while text not in screen:
        if time.monotonic() > give_up:
            sys.exit(f"{text!r} did not appear on the screen:\n{screen.decode(errors='replace')}")
        if select.select([terminal], [], [], 1)[0]:
            try:
                screen += os.read(terminal, 4096)
            except OSError:
                sys.exit(f"the shell ended before {text!r}:\n{screen.decode(errors='replace')}")


def enter(line):
    os.write(terminal, line + b"\n")


wait_for(b" # ")  # the prompt, wherever the repository lies
enter(b"echo $((40 + 2)) $DEV_A on $(tty)")
wait_for(b"42 rxe_a on /dev/tty0")
enter(b"echo busy$((1)); sleep 1000")
wait_for(b"busy1")
time.sleep(1)
os.write(terminal, b"\x03")
time.sleep(1)
enter(b"echo after $((1 + 1))")
wait_for(b"after 2")
enter(b"exit 3")
while True:
    try:
        if not os.read(terminal, 4096):
            break
    except OSError:
        break
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
if status != 3:
    sys.exit(f"lab shell ended with status {status} instead of 3")
