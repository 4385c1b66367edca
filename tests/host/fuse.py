#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fuse - a file system that can hang: `fuse.py MOUNTPOINT`, then a line on standard input for each change.

A folder with the empty folder "sub", served over /dev/fuse by hand.  "hang": requests are read and never
answered, so that callers sleep in the kernel where no signal reaches them; "go": held requests are answered,
and new ones at once.  The mount ends with this process; the kernel then fails waiting requests with ENOTCONN.
"""
import ctypes
import os
import select
import struct
import sys

LOOKUP, FORGET, GETATTR, OPENDIR, READDIR, RELEASEDIR, STATFS, INIT, ACCESS = 1, 2, 3, 27, 28, 29, 17, 26, 34
BATCH_FORGET, INTERRUPT, READDIRPLUS = 42, 36, 44
ENOENT, ENOSYS = 2, 38


def attributes(node):  # struct fuse_attr: a folder, 0755
    return struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)


def answer(fd, unique, error=0, body=b""):
    try:
        os.write(fd, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)
    except OSError:
        pass  # the request was interrupted meanwhile


def serve(fd, opcode, unique, node, name):
    if opcode == INIT:  # 7.31 with nothing special; 64 bytes
        answer(fd, unique, 0, struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 8, 6, 4096, 1, 1, 0, 0) + bytes(28))
    elif opcode == GETATTR:
        answer(fd, unique, 0, struct.pack("<QII", 0, 0, 0) + attributes(node))
    elif opcode == STATFS:
        answer(fd, unique, 0, struct.pack("<QQQQQIIII", 0, 0, 0, 0, 0, 512, 255, 512, 0) + bytes(24))
    elif opcode == OPENDIR:
        answer(fd, unique, 0, struct.pack("<QII", 0, 0, 0))
    elif opcode in (READDIR, READDIRPLUS, RELEASEDIR, ACCESS):
        answer(fd, unique)
    elif opcode == LOOKUP:
        if (node, name) == (1, b"sub\0"):  # struct fuse_entry_out: nothing is cached, so each lookup asks again
            answer(fd, unique, 0, struct.pack("<QQQQII", 2, 0, 0, 0, 0, 0) + attributes(2))
        else:
            answer(fd, unique, ENOENT)
    elif opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
        answer(fd, unique, ENOSYS)


def main():
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions".encode()
    if libc.mount(b"coracle-test", sys.argv[1].encode(), b"fuse", 0, options) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    hanging, held = False, []
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([fd, sys.stdin], [], [])
        if sys.stdin in readable:
            line = sys.stdin.readline()
            if not line:
                return
            hanging = line.strip() == "hang"
            while held and not hanging:
                serve(fd, *held.pop(0))
            print("ok", flush=True)
        if fd in readable:
            try:
                request = os.read(fd, 1 << 17)
            except BlockingIOError:
                continue
            except OSError:
                return  # unmounted
            _, opcode, unique, node = struct.unpack("<IIQQ", request[:24])
            if hanging and opcode not in (FORGET, BATCH_FORGET, INTERRUPT):
                held.append((opcode, unique, node, request[40:]))
            else:
                serve(fd, opcode, unique, node, request[40:])


if __name__ == "__main__":
    main()
