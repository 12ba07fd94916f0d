#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""protocol.py WIRE.H > medge-protocol.7: the protocol's page, of the header that the module is built with.

What is for the decoder alone is left out. A field without a description, a size that is not the one which the header
asserts, or a line that is not understood ends it with a message: the page says all that the header says, or is not.
"""
import ast
import operator
import re
import sys

# Where the description of frames ends, and of what the decoder makes of them begins.
END = '/* Why bytes are not a frame.'
SIZES = {'u8': 1, '__be16': 2, '__be32': 4, '__be64': 8}
TYPES = {'u8': '8 bits', '__be16': '16 bits', '__be32': '32 bits', '__be64': '64 bits'}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.floordiv,
             ast.BitOr: operator.or_, ast.LShift: operator.lshift}

HEAD = r'''.\" SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
.\" Made of wire.h by protocol.py.
.TH MEDGE\-PROTOCOL 7 "" "medge" "medge"
.SH NAME
medge\-protocol \- what medge nodes send each other
.SH DESCRIPTION'''
TAIL = r'''.SH SEE ALSO
.BR medge (7),
.BR medge\-statistics (7)'''


class Unclear(Exception):
    pass


class Page:
    """The page, as it grows, and the numbers that have been told so far."""

    def __init__(self):
        self.lines = [HEAD]
        self.known = {}

    def text(self, comment):
        """A comment's paragraphs; what is indented in it is a table."""
        for part in re.split(r'\n\s*\n', comment.strip('\n')):
            if part.startswith('  '):
                self.lines += ['.PP', '.nf'] + [roff(line) for line in part.split('\n')] + ['.fi']
            else:
                self.lines += ['.PP', roff(' '.join(part.split()))]

    def item(self, term, comment):
        self.lines += ['.TP', '.B ' + roff(term), roff(' '.join(comment.split())) or r'\&']

    def number(self, expression):
        """The value of a constant expression of C."""
        words = re.sub(r'\bBIT\(', '(1 << (', expression).replace('sizeof(struct ', 'sizeof(')
        words = re.sub(r'\(1 << \(([^()]*)\)', r'(1 << (\1))', words)
        words = re.sub(r'sizeof\((\w+)\)', r'sizeof_\1', words)
        words = re.sub(r'\b(0x[0-9a-f]+|\d+)u\b', r'\1', words)
        return self.value(ast.parse(' '.join(words.split()), mode='eval').body)

    def value(self, node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](self.value(node.left), self.value(node.right))
        raise Unclear('a value: ' + ast.dump(node))

    def enum(self, name, comment, body):
        self.lines.append('.SS ' + roff('enum ' + name if name else 'Numbers'))
        if comment:
            self.text(comment)
        value = -1
        for before, symbol, expression, after in constants(body):
            value = self.number(expression) if expression else value + 1
            self.known[symbol] = value
            shown = hex(value) if expression.startswith(('0x', 'BIT')) else str(value)
            self.item('%s = %s' % (symbol, shown), before or after)

    def struct(self, name, comment, body):
        title, fields, rest = kernel_doc(name, comment)
        self.lines += ['.SS ' + roff('struct ' + name), roff(sentence(title)) + '.']
        offset = 0
        for field in re.findall(r'[^;]+;', body):
            match = re.fullmatch(r'\s*(?:struct )?(\w+) (\w+)(?:\[(\w+)\])?;', field)
            if not match:
                raise Unclear('a field of %s: %s' % (name, field.strip()))
            kind, member, count = match.groups()
            size = SIZES[kind] if kind in SIZES else self.known['sizeof_' + kind]
            offset += -offset % min(size, 8) if kind in SIZES else 0
            told = fields.pop(member, 'zero' if member.startswith('reserved') else None)
            if told is None:
                raise Unclear('%s of %s has no description' % (member, name))
            many = '' if not count else ' x %d' % self.number(count)
            self.item('%s, at %d: %s%s' % (member, offset, TYPES.get(kind, 'struct ' + kind), many), told)
            offset += size * (self.number(count) if count else 1)
        if fields:
            raise Unclear('%s describes what it has not: %s' % (name, ', '.join(fields)))
        self.known['sizeof_' + name] = offset
        self.lines += ['.PP', '%d bytes in all.' % offset]
        self.text(rest)

    def check(self, condition):
        """A static_assert, of sizes."""
        left, relation, right = re.fullmatch(r'(.+) (==|<=) (.+)', condition).groups()
        left, right = self.number(left), self.number(right)
        if not (left == right if relation == '==' else left <= right):
            raise Unclear('%s: %d and %d' % (condition, left, right))


def roff(text):
    text = re.sub(r'@(?=\w)', '', text)
    text = re.sub(r'\*(\w+)\*', r'\1', text)
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text.startswith(('.', "'")) else text


def sentence(text):
    return text[0].upper() + text[1:]


def inside(comment):
    """A block comment's text, without its stars."""
    text = re.sub(r'^/\*\*?|\*/$', '', comment.strip())
    return '\n'.join(re.sub(r'^\s*\* ?', '', line) for line in text.split('\n')).rstrip()


def constants(body):
    """(comment before, name, expression or '', comment behind) of each constant of an enum."""
    pattern = r'\s*(/\*(?:(?!\*/).)*\*/)?\s*(\w+)(?: = ((?:[^,/}]|/(?!\*))+?))?\s*(?:,|$)[ \t]*(/\*(?:(?!\*/).)*\*/)?'
    end = 0
    for match in re.finditer(pattern, body, re.S):
        if body[end:match.start()].strip():
            break
        end = match.end()
        before, symbol, expression, after = match.groups()
        yield inside(before or ''), symbol, expression or '', inside(after or '')
    if body[end:].strip():
        raise Unclear('an enum: ' + body[end:].strip())


def kernel_doc(name, comment):
    """Title, {field: description} and the rest of a kernel-doc comment."""
    match = re.match(r'struct (\w+) - (.*)', comment.strip())
    if not match or match.group(1) != name:
        raise Unclear('struct %s has no description' % name)
    fields, rest, told = {}, [], None
    for line in comment.strip().split('\n')[1:]:
        field = re.match(r'((?:@\w+(?:, )?)+): (.*)', line)
        if field:
            told = re.findall(r'@(\w+)', field.group(1))
            fields.update((one, field.group(2)) for one in told)
        elif told and line.startswith('  '):
            fields.update((one, fields[one] + '\n' + line) for one in told)
        else:
            told = None
            rest.append(line)
    return match.group(2), fields, '\n'.join(rest)


def page_of(header):
    page = Page()
    if END not in header:
        raise Unclear('what is for the decoder alone does not begin as it did')
    words = header[:header.index(END)]
    words = words[words.index('/*\n'):]
    comment = inside(words[:words.index('*/') + 2])
    page.text(sentence(comment[comment.index(':') + 2:]))
    words = words[words.index('#include "env.h"') + len('#include "env.h"'):]
    comment = ''
    while words.strip():
        words = words.lstrip()
        for pattern, act in PARTS:
            match = re.match(pattern, words, re.S | re.M)
            if match:
                break
        else:
            raise Unclear('this: ' + words.split('\n')[0])
        comment = act(page, comment, *match.groups()) or ''
        words = words[match.end():]
    return '\n'.join(page.lines + [TAIL])


PARTS = (
    (r'(/\*.*?\*/)', lambda page, comment, text: inside(text)),
    (r'enum (\w*) ?\{(.*?)\};', lambda page, comment, name, body: page.enum(name, comment, body)),
    (r'struct (\w+) \{(.*?)\};', lambda page, comment, name, body: page.struct(name, comment, body)),
    (r'static_assert\((.*?)\);$', lambda page, comment, condition: page.check(condition)),
    # A helper in C: its users have the header.
    (r'static inline .*?^\}', lambda page, comment: None),
)

if __name__ == '__main__':
    try:
        with open(sys.argv[1], encoding='utf-8') as header_file:
            print(page_of(header_file.read()))
    except Unclear as what:
        sys.exit('protocol.py: %s: %s' % (sys.argv[1], what))
