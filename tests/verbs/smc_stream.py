#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ordinary streams that the kernel carries over RDMA, by SMC-R: what is sent comes back as it was.

  smc_stream.py name NAME                     hosts that have a name in common may use SMC-R, version 2
  smc_stream.py join NET netdev NETDEV        what goes over this interface belongs to the network NET
  smc_stream.py join NET device DEVICE        and this RDMA device does, which serves interfaces of its network
  smc_stream.py serve ADDRESS PORT            send back whatever comes, until killed
  smc_stream.py ask ADDRESS PORT BYTES SEED   so many bytes, on each of several connections at a time
"""
import concurrent.futures
import os
import random
import socket
import struct
import sys
import threading

IPPROTO_SMC = 256
CONNECTIONS = 4
NETLINK_GENERIC = 16
# linux/netlink.h, linux/genetlink.h, linux/smc.h
REQUEST, ACK = 1, 4
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
SMC_NETLINK_ADD_UEID, SMC_NLA_EID_TABLE_ENTRY, NAME_BYTES = 10, 1, 32
SMC_PNETID_ADD, SMC_PNETID_NAME = 2, 1
SMC_PNETID = {'netdev': 2, 'device': 3}


def call(netlink, family, command, *strings):
    """A command with strings, each behind what it is. What the kernel answers, past the header."""
    body = struct.pack('=BBH', command, 1, 0)
    for attribute, text in strings:
        text = text.encode() + b'\0'
        body += struct.pack('=HH', 4 + len(text), attribute) + text + bytes(-len(text) % 4)
    netlink.send(struct.pack('=IHHII', 16 + len(body), family, REQUEST | ACK, 1, 0) + body)
    return netlink.recv(65536)[16:]


def family_of(answer):
    """The number among the attributes of an answer that follow the command."""
    at = 4
    while at < len(answer):
        size, kind = struct.unpack_from('=HH', answer, at)
        if kind == CTRL_ATTR_FAMILY_ID:
            return struct.unpack_from('=H', answer, at + 4)[0]
        at += (size + 3) & ~3
    raise OSError('this kernel has no SMC')


def tell(family, command, *strings):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC) as netlink:
        number = family_of(call(netlink, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, (CTRL_ATTR_FAMILY_NAME, family)))
        netlink.recv(65536)
        answer = call(netlink, number, command, *strings)
    error = -struct.unpack_from('=i', answer)[0]
    if error:
        raise OSError(error, os.strerror(error))


def stream():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_SMC)


def echo(connection):
    with connection:
        while data := connection.recv(1 << 18):
            connection.sendall(data)


def serve(address, port):
    with stream() as listener:
        listener.bind((address, port))
        listener.listen()
        while True:
            threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def send(connection, data, rng):
    at = 0
    while at < len(data):
        size = rng.choice([1, 100, 5000, 200000])
        connection.sendall(data[at:at + size])
        at += size
    connection.shutdown(socket.SHUT_WR)


def ask(address, port, size, seed):
    """The number of bytes that came back right; an exception if not all did."""
    rng = random.Random(seed)
    data = rng.randbytes(size)
    back = bytearray()
    with stream() as connection:
        connection.connect((address, port))
        sender = threading.Thread(target=send, args=(connection, data, rng))
        sender.start()
        while part := connection.recv(1 << 18):
            back += part
        sender.join()
    if back != data:
        at = next((i for i, (a, b) in enumerate(zip(back, data)) if a != b), min(len(back), size))
        raise ValueError(f'of {size} bytes {len(back)} came back, right up to {at}')
    return size


def main(what, *args):
    if what == 'name':
        tell('SMC_GEN_NETLINK', SMC_NETLINK_ADD_UEID, (SMC_NLA_EID_TABLE_ENTRY, args[0].ljust(NAME_BYTES)))
    elif what == 'join':
        tell('SMC_PNETID', SMC_PNETID_ADD, (SMC_PNETID_NAME, args[0]), (SMC_PNETID[args[1]], args[2]))
    elif what == 'serve':
        serve(args[0], int(args[1]))
    else:
        address, port, size, seed = args[0], *map(int, args[1:])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            asked = [pool.submit(ask, address, port, size, seed + i) for i in range(CONNECTIONS)]
            print(sum(a.result() for a in asked), 'bytes came back as they were')


main(*sys.argv[1:])
