#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""
Somebody listens on a node's rails, and repeats what the node has sent.

  secret_wire.py RAILS BYTE SECRET

Until it gets SIGTERM, look at each frame that leaves: its type, whether it has 64
times that byte in a row, and, where it is about keys, whether its tag is that of
RFC 2104's HMAC, as Python has it. Each is sent again as it is, and some with a
flipped bit. Says when it is ready, and what there was, as shell assignments. Run
in the node's network namespace.
"""
import hashlib
import hmac
import random
import select
import signal
import socket
import sys

ETHERTYPE = 0x88B6
ETH_LEN = 14
# The lower half of a frame's first byte; the upper is the version.
SECRET, KEYS = 6, 7
KEYS_LEN, TAG_LEN = 52, 16
# So that the node is not kept from what it is asked for.
REPLAYS = 2000
# Bytes that may wait while others have the CPU; by a name that Python's socket does not have.
SO_RCVBUFFORCE, WAITING = 33, 64 << 20


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def root_of(secret):
    return mac(hashlib.sha256(secret).digest(), b"medge root 1\0")


def tag_is_right(root, frame):
    message = frame[ETH_LEN : ETH_LEN + KEYS_LEN]
    addresses = frame[6:12] + frame[0:6]
    of = b"medge tag 1".ljust(16, b"\0") + addresses + message[:-TAG_LEN]
    return mac(root, of)[:TAG_LEN] == message[-TAG_LEN:]


def rail_sockets(count):
    for i in range(count):
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, WAITING)
        sock.bind((f"rail{i}", 3))
        sock.setblocking(False)
        yield sock


def send(sock, frame):
    try:
        sock.send(frame)
        return True
    except OSError:
        # An uncut superframe, or a full queue.
        return False


def main():
    rails, byte = int(sys.argv[1]), int(sys.argv[2], 0)
    root = root_of(sys.argv[3].encode())
    mark = bytes([byte]) * 64
    n = dict.fromkeys(["heard", "marked", "other", "keys", "keys_wrong", "replayed", "forged"], 0)
    sent = set()
    sockets = list(rail_sockets(rails))
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    print("ready", flush=True)
    while True:
        # Looked at first: what was there before the signal is heard.
        ends = bool(told)
        ready = select.select(sockets, [], [], 0 if ends else 0.1)[0]
        if ends and not ready:
            break
        for sock in ready:
            try:
                frame, address = sock.recvfrom(1 << 17)
            except BlockingIOError:
                continue
            if address[1] != ETHERTYPE or address[2] != socket.PACKET_OUTGOING or frame in sent:
                continue
            n["heard"] += 1
            n["marked"] += mark in frame
            kind = frame[ETH_LEN] & 15
            n["other"] += kind not in (SECRET, KEYS)
            if kind == KEYS:
                n["keys"] += 1
                n["keys_wrong"] += not tag_is_right(root, frame)
            if n["replayed"] < REPLAYS:
                sent.add(frame)
                n["replayed"] += send(sock, frame) and kind == SECRET
                if n["replayed"] % 8 == 0 and kind == SECRET:
                    at = random.randrange(8 * (ETH_LEN + 16), 8 * len(frame))
                    lie = bytearray(frame)
                    lie[at // 8] ^= 1 << at % 8
                    # Its number is that of a frame still to come, lest it be old.
                    lie[ETH_LEN + 12] ^= 1
                    sent.add(bytes(lie))
                    n["forged"] += send(sock, bytes(lie))
    print(" ".join(f"{name}={value}" for name, value in n.items()))


main()
