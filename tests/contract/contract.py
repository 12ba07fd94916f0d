# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The ordering contract (DESIGN section 4), told from what memory was seen to do.

Nothing here knows how medge keeps the contract. A history is a list of events in
the order in which they happened; ops are what the application asked for. Each op
writes bytes that say which op they are of, so memory alone tells who wrote it.
"""
import dataclasses

WRITES = ('write', 'write_imm')
SENDS = ('send', 'send_imm')
ATOMICS = ('cmp_swap', 'fetch_add')
ANSWERED = ('read',) + ATOMICS


class Violation(AssertionError):
    """The contract is broken."""


@dataclasses.dataclass
class Op:
    """What the application asked for; @space, @at: the memory that it names."""
    opcode: str
    length: int = 8
    space: str = 'strict'
    at: int = 0
    ordered: bool = True        # an ordinary QP, and memory that is not relaxed
    backward: bool = False
    forward: bool = False
    wait: bool = False          # IBV_SEND_FENCE
    operand: int = 0
    swap: int = 0
    bad: bool = False           # the peer must refuse it

    @property
    def placed_length(self):
        """Bytes that it puts into the peer's memory."""
        return self.length if self.opcode in WRITES + SENDS else 0


def must_precede(ops, i, j):
    """Must all of op @i have happened before anything of op @j, @i < @j, is seen?"""
    first, then = ops[i], ops[j]
    return (then.backward or first.forward or
            (then.ordered and then.opcode in WRITES + SENDS) or
            then.opcode in ANSWERED)


def before_delivery(ops, i, j):
    """Must all of op @i have happened before op @j is delivered?"""
    return i < j and ops[j].opcode in SENDS + ('write_imm',)


class Stream:
    """One direction: the ops of one poster, as the peer's memory sees them."""

    def __init__(self, ops):
        self.ops = ops
        self.bytes = [bytearray(op.placed_length) for op in ops]
        self.placed = [0] * len(ops)
        self.performed = 0
        self.answers = {}
        self.completed = 0
        self.failed = None

    def fail(self, text, *args):
        raise Violation(text % args)

    def done(self, i):
        """Has all of op @i happened?"""
        if i < self.performed:
            return True
        return (self.ops[i].opcode == 'write' and not self.ops[i].bad and
                self.placed[i] == self.ops[i].placed_length)

    def check_before(self, j):
        """Something of op @j happens: is it time?"""
        for i in range(j):
            # What was asked for and answered must be over, too, and is: see read().
            if must_precede(self.ops, i, j) and not self.done(i):
                self.fail('op %d shows, but op %d before it has not happened', j, i)

    def place(self, j, offset, length):
        op = self.ops[j]
        if op.bad:
            self.fail('op %d shows, and must be refused', j)
        if j < self.performed:
            self.fail('op %d is written again after it was performed', j)
        if offset + length > op.placed_length:
            self.fail('op %d of %d bytes writes its byte %d', j, op.placed_length,
                      offset + length - 1)
        self.check_before(j)
        if op.ordered and offset != self.placed[j]:
            self.fail('op %d writes its byte %d when %d bytes are there', j, offset,
                      self.placed[j])
        if any(self.bytes[j][offset:offset + length]):
            self.fail('op %d writes a byte twice, of %d to %d', j, offset, offset + length)
        self.bytes[j][offset:offset + length] = b'\1' * length
        self.placed[j] += length

    def perform(self, j):
        op = self.ops[j]
        if j != self.performed:
            self.fail('op %d is performed when %d ops are', j, self.performed)
        if self.placed[j] != op.placed_length:
            self.fail('op %d is performed with %d of its %d bytes', j, self.placed[j],
                      op.placed_length)
        if op.opcode in ATOMICS and j not in self.answers:
            self.fail('op %d is performed, but its atomic was not executed', j)
        if op.bad:
            self.fail('op %d is performed, and must be refused', j)
        self.performed += 1

    def atomic(self, j, before, after):
        op = self.ops[j]
        if j != self.performed:
            self.fail('atomic %d is executed when %d ops are performed', j, self.performed)
        if j in self.answers:
            self.fail('atomic %d is executed twice', j)
        if op.opcode == 'fetch_add':
            want = (before + op.operand) % 2**64
        else:
            want = op.swap if before == op.operand else before
        if after != want:
            self.fail('atomic %d makes %#x of %#x, not %#x', j, after, before, want)
        self.answers[j] = before

    def complete(self, j, good):
        op = self.ops[j]
        if j != self.completed or self.failed is not None:
            self.fail('op %d completes when %d ops are', j, self.completed)
        if good == op.bad:
            self.fail('op %d completes %s', j, 'well, and must not' if good else 'badly')
        if good and j >= self.performed:
            self.fail('op %d completes before it is performed', j)
        self.completed += 1
        if not good:
            self.failed = j

    def end(self):
        """Nothing more will happen."""
        want = next((j + 1 for j, op in enumerate(self.ops) if op.bad), len(self.ops))
        if self.completed != want:
            self.fail('%d ops completed, not %d', self.completed, want)


class Memory:
    """All values that each byte ever had, and since when."""

    def __init__(self):
        self.values = {}

    def write(self, now, space, at, length, value):
        for byte in range(at, at + length):
            self.values.setdefault((space, byte), [(-1, 0)]).append((now, value))

    def possible(self, space, byte, since, until):
        """What the byte held at any time of an interval, and since when."""
        values = self.values.get((space, byte), [(-1, 0)])
        held = [entry for entry in values if entry[0] <= since][-1:]
        return held + [entry for entry in values if since < entry[0] <= until]


def after_read(ops, read, j):
    """Must op @j, posted after the READ, leave alone what the READ returns?"""
    return (ops[read].forward or ops[j].backward or
            any(ops[k].wait for k in range(read + 1, j + 1)))


class Pair:
    """Both directions, and both memories."""

    def __init__(self, ops):
        self.streams = [Stream(side) for side in ops]
        self.memories = [Memory(), Memory()]     # of the side that posts into it
        self.performed_at = [{}, {}]
        self.cells = [{}, {}]
        self.now = 0

    def play(self, history):
        for self.now, event in enumerate(history):
            getattr(self, event[0])(*event[1:])

    def place(self, side, j, offset, length, space, at):
        stream = self.streams[side]
        op = stream.ops[j]
        if op.opcode in WRITES and (space, at) != (op.space, op.at + offset):
            stream.fail('op %d writes its byte %d to %s %d', j, offset, space, at)
        stream.place(j, offset, length)
        self.memories[side].write(self.now, space, at, length, j + 1)

    def perform(self, side, j):
        self.streams[side].perform(j)
        self.performed_at[side][j] = self.now

    def atomic(self, side, j, at, before, after):
        cell = self.cells[side].get(at, 0)
        if before != cell:
            self.streams[side].fail('atomic %d finds %#x, not %#x', j, before, cell)
        if at != self.streams[side].ops[j].at:
            self.streams[side].fail('atomic %d is executed at %d', j, at)
        self.streams[side].atomic(j, before, after)
        self.cells[side][at] = after

    def answer(self, side, j, value):
        want = self.streams[side].answers.get(j)
        if value != want:
            self.streams[side].fail('atomic %d answers %#x, not %#x', j, value, want)

    def read(self, side, j, data):
        """A READ brought @data: each byte was there, at a time when it may be read."""
        stream = self.streams[side]
        op = stream.ops[j]
        if len(data) != op.length:
            stream.fail('read %d brings %d bytes, not %d', j, len(data), op.length)
        since = self.performed_at[side].get(j)
        if since is None:
            stream.fail('read %d is answered before it is performed', j)
        for i, value in enumerate(data):
            held = self.memories[side].possible(op.space, op.at + i, since, self.now)
            if not any(entry[1] == value and not
                       (entry[1] > j + 1 and after_read(stream.ops, j, entry[1] - 1))
                       for entry in held):
                stream.fail('read %d brings op %d\'s byte at %d, where op %s may be', j,
                            value - 1, op.at + i, [entry[1] - 1 for entry in held])

    def complete(self, side, j, good):
        self.streams[side].complete(j, good)

    def end(self):
        refused = any(stream.failed is not None for stream in self.streams)
        for stream in self.streams:
            # A refusal is the end of the other direction, too, wherever that is.
            if not refused or any(op.bad for op in stream.ops):
                stream.end()


def check(ops, history):
    """Raises Violation if @history of both sides' @ops breaks the contract."""
    Pair(ops).play(list(history) + [('end',)])
