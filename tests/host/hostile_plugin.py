#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_plugin - a device plugin that python3-grpcio would not let one write: HTTP/2 by python3-h2, and bytes by hand.

`--how` names what it does wrong (HOW below); everything else is answered properly, with two devices.  It writes a
line of JSON for each call.  Needs Debian's python3-h2 and python3-grpcio.
"""
import argparse
import json
import os
import socket
import struct
import sys
import threading
import time

import grpc
import h2.config
import h2.connection
import h2.events
import h2.exceptions

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from grpc_messages import dp, go_error  # noqa: E402  (beside this file)

HEADERS = [(":status", "200"), ("content-type", "application/grpc")]
OK = [("grpc-status", "0")]
MILLION = 1000000


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    """A length-delimited field of protobuf; any bytes."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def device(name, health=b"Healthy"):
    return field(1, field(1, name) + field(2, health))


def grpc_frame(message):
    return b"\0" + struct.pack(">I", len(message)) + message


def h2_frame(kind, flags, stream, payload, length=None):
    return struct.pack(">I", len(payload) if length is None else length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


ODD_IDS = [b"with space", b"line\nbreak", "\u202egnp".encode(), b"../../etc/passwd", b"a/b", b"x" * 4000,
           b"\"quote\\", b"<b>&amp;", b"\x1b[31mred", b"twice", b"twice"]


class Connection(threading.Thread):
    def __init__(self, plugin, sock):
        super().__init__(daemon=True)
        self.plugin, self.sock, self.lock = plugin, sock, threading.RLock()
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.window = threading.Condition(self.lock)
        self.bodies, self.paths = {}, {}

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.sock.sendall(data)

    def raw(self, data):
        with self.lock:
            self.flush()
            self.sock.sendall(data)

    def begin(self, stream):
        with self.lock:
            self.h2.send_headers(stream, HEADERS)
            self.flush()

    def data(self, stream, data):
        """Within the windows that the agent gives."""
        at = 0
        while at < len(data):
            with self.window:
                while True:
                    room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(data) - at)
                    if room > 0:
                        break
                    self.window.wait()
                self.h2.send_data(stream, data[at:at + room])
                self.flush()
            at += room

    def end(self, stream, trailers):
        with self.lock:
            self.h2.send_headers(stream, trailers, end_stream=True)
            self.flush()

    def answer(self, stream, message):
        self.begin(stream)
        self.data(stream, grpc_frame(message))
        self.end(stream, OK)

    def run(self):
        try:
            with self.lock:
                self.h2.initiate_connection()
                self.flush()
            while True:
                got = self.sock.recv(65536)
                if not got:
                    return
                with self.window:
                    events = self.h2.receive_data(got)
                    self.flush()
                    self.window.notify_all()
                for event in events:
                    self.event(event)
        except (OSError, h2.exceptions.ProtocolError):
            return
        finally:
            self.plugin.say("closed")
            self.sock.close()

    def event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.paths[event.stream_id] = dict(event.headers)[":path"] if ":path" in dict(event.headers) else \
                dict(event.headers)[b":path"].decode()
            self.bodies[event.stream_id] = b""
        elif isinstance(event, h2.events.DataReceived):
            self.bodies[event.stream_id] += event.data
        elif isinstance(event, h2.events.StreamEnded):
            threading.Thread(target=self.call, args=(event.stream_id,), daemon=True).start()

    def call(self, stream):
        call = self.paths[stream].rpartition("/")[2]
        self.plugin.say(call)
        try:
            getattr(self.plugin, "on_" + call)(self, stream, self.bodies[stream][5:])
        except (OSError, h2.exceptions.ProtocolError) as error:
            self.plugin.say("cut off", call=call, error=repr(error))


class Plugin:
    def __init__(self, options):
        self.o, self.lock = options, threading.Lock()

    def say(self, event, **more):
        with self.lock:
            os.write(1, (json.dumps({"event": event, **more}) + "\n").encode())

    # -- the calls; what `how` names goes wrong

    def on_GetDevicePluginOptions(self, c, stream, _body):
        if self.o.how == "options-garbage":
            return c.answer(stream, b"\xff" * 40)
        if self.o.how == "options-no-trailers":
            c.begin(stream)
            c.data(stream, grpc_frame(b""))
            return c.raw(h2_frame(0, 1, stream, b""))  # END_STREAM on a DATA frame
        if self.o.how == "options-not-grpc":
            return c.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        if self.o.how == "options-bad-status":
            c.begin(stream)
            return c.end(stream, [("grpc-status", "999999999999999999999"), ("grpc-message", "%ff%00%zz" + "x" * 6000)])
        preferred = b"\x10\x01" if self.o.how.startswith("preferred") else b""
        prestart = b"\x08\x01" if self.o.how.startswith("prestart") else b""
        c.answer(stream, prestart + preferred)
        return None

    def on_ListAndWatch(self, c, stream, _body):
        how = self.o.how
        c.begin(stream)
        if how == "list-half-frame":
            return c.raw(h2_frame(0, 0, stream, b"\0\0\0\1\0" + b"x" * 20, length=256))  # and nothing more
        if how == "list-half-then-close":
            c.raw(h2_frame(0, 0, stream, b"\0\0\0\1\0" + b"x" * 20, length=256))
            return c.sock.shutdown(socket.SHUT_RDWR)
        if how == "list-16mb-frame":
            return c.raw(h2_frame(0, 0, stream, b"x" * (16 * 1024 * 1024 - 1)))
        if how == "list-16mb-message":
            return c.data(stream, grpc_frame(b"".join(device(b"dev-%06d" % i + b"x" * 900) for i in range(17500))))
        if how == "list-4gb-length":
            return c.data(stream, b"\0\xff\xff\xff\xff" + b"x" * 1000000)
        if how == "list-compressed":
            return c.data(stream, b"\1" + struct.pack(">I", 10) + b"x" * 10)
        if how == "list-million":
            return c.data(stream, grpc_frame(b"".join(device(b"dev-%d" % i) for i in range(MILLION))))
        if how in ("list-65536", "list-65537"):
            return c.data(stream, grpc_frame(b"".join(device(b"dev-%d" % i) for i in range(int(how[5:])))))
        if how == "list-garbage":
            return c.data(stream, grpc_frame(os.urandom(4096)))
        if how == "list-odd-ids":
            return c.data(stream, grpc_frame(b"".join(device(i) for i in ODD_IDS) + device(b"dev-0") + device(b"dev-1")))
        refused = {"list-nul-id": b"nul\0byte", "list-bad-utf8": b"\xff\xfe\x80", "list-empty-id": b"", "list-long-id": b"x" * 5000}
        if how in refused:
            return c.data(stream, grpc_frame(device(b"dev-0") + device(refused[how])))
        if how == "list-odd-health":
            return c.data(stream, grpc_frame(device(b"dev-0") + device(b"dev-1", b"Splendid\n\x1b[31m") + device(b"dev-2", b"x" * 100000)))
        if how == "list-ends":
            return c.end(stream, OK)
        if how == "list-stray-streams":
            for other in range(1001, 9001, 2):
                c.raw(h2_frame(0, 0, other, b"x" * 100))
            return None
        if how == "list-continuation-flood":
            c.raw(h2_frame(1, 0, stream, b"\x88"))  # HEADERS without END_HEADERS
            while True:
                c.raw(h2_frame(9, 0, stream, b"\x00\x01a\x01b" * 1000))
        if how == "list-window-overflow":
            return c.raw(h2_frame(8, 0, 0, struct.pack(">I", 0x7FFFFFFF)) * 2)
        if how == "flood-pings":
            while True:
                c.raw(h2_frame(6, 0, 0, b"12345678") * 1000)
        if how == "flood-settings":
            while True:
                c.raw(h2_frame(4, 0, 0, b"") * 1000)
        if how == "flood-empty-data":
            while True:
                c.raw(h2_frame(0, 0, stream, b"") * 1000)
        normal = device(b"dev-0") + device(b"dev-1")
        if how == "flood-lists":
            while True:
                c.data(stream, grpc_frame(normal) + grpc_frame(device(b"dev-0") + device(b"dev-1", b"Unhealthy")))
        if how == "flood-big-lists":
            many = [b"".join(device(b"d-%d-%d" % (k, i)) for i in range(20000)) for k in range(2)]
            while True:
                c.data(stream, grpc_frame(many[0]) + grpc_frame(many[1]))
        c.data(stream, grpc_frame(normal))
        return None

    def on_GetPreferredAllocation(self, c, stream, _body):
        answers = {"preferred-lies": [b"dev-7", b"no-such", b"\n"], "preferred-bad-utf8": [b"\xff"], "preferred-twice": [b"dev-0"] * 5,
                   "preferred-too-many": [b"dev-%d" % i for i in range(50000)], "preferred-none": []}
        ids = answers.get(self.o.how, [b"dev-1"])
        c.answer(stream, field(1, b"".join(field(1, i) for i in ids)))

    def on_Allocate(self, c, stream, body):
        how = self.o.how
        if how == "allocate-no-response":
            return c.answer(stream, b"")
        if how == "allocate-garbage":
            return c.answer(stream, os.urandom(512) + b"\xff" * 16)
        if how == "allocate-16mb":
            return c.answer(stream, field(1, field(1, field(1, b"BIG") + field(2, b"x" * (16 * 1024 * 1024)))))
        if how == "allocate-many-env":
            return c.answer(stream, field(1, b"".join(field(1, field(1, b"E%d" % i) + field(2, b"v")) for i in range(100000))))
        if how == "allocate-odd-paths":
            spec = field(1, b"/dev/../../../etc/x\n") + field(2, b"relative") + field(3, b"rwmx")
            return c.answer(stream, field(1, field(3, spec) + field(2, field(1, b"no-slash") + field(2, b"/nowhere/at/all"))))
        if how == "allocate-odd-env":
            return c.answer(stream, field(1, field(1, field(1, b"A=B\0C") + field(2, b"v\0w")) + field(1, field(1, b"") + field(2, b"x"))))
        if how == "allocate-bad-cdi":
            return c.answer(stream, field(1, field(5, field(1, b"../../x=\n"))))
        if how == "allocate-half-then-close":
            c.begin(stream)
            c.raw(h2_frame(0, 0, stream, b"\0\0\0\1\0" + b"x" * 20, length=256))
            return c.sock.shutdown(socket.SHUT_RDWR)
        if how == "allocate-goaway":
            return c.raw(h2_frame(7, 0, 0, struct.pack(">II", 0, 0)))
        if how == "allocate-reset":
            return c.raw(h2_frame(3, 0, stream, struct.pack(">I", 2)))
        c.answer(stream, field(1, b""))
        return None

    def on_PreStartContainer(self, c, stream, _body):
        if self.o.how == "prestart-headers-only":
            return c.begin(stream)  # and nothing more
        c.answer(stream, b"")
        return None

    # -- serving and registering

    def serve(self):
        path = f"{self.o.root}/device-plugins/{self.o.name}.sock"
        try:
            os.unlink(path)
        except OSError:
            pass
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(64)

        def accept():
            while True:
                Connection(self, listener.accept()[0]).start()
        threading.Thread(target=accept, daemon=True).start()

    def register(self):
        request = dp.RegisterRequest(version="v1beta1", endpoint=self.o.endpoint or f"{self.o.name}.sock", resource_name=self.o.resource)
        try:
            with grpc.insecure_channel(f"unix:{self.o.root}/device-plugins/kubelet.sock") as channel:
                channel.unary_unary("/v1beta1.Registration/Register", lambda m: m.SerializeToString(),
                                    dp.Empty.FromString)(request, timeout=40)
            self.say("Register", ok=True)
        except grpc.RpcError as error:
            self.say("Register", error=go_error(error))

    def run(self):
        self.serve()
        if self.o.how == "flood-registers":
            def forever():
                while True:
                    self.register()
            for _ in range(4):
                threading.Thread(target=forever, daemon=True).start()
        elif self.o.how == "flood-connections":
            kept = []
            while True:
                try:
                    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    s.settimeout(1)
                    s.connect(f"{self.o.root}/device-plugins/kubelet.sock")
                    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
                    kept.append(s)
                except OSError:
                    self.say("connections", count=len(kept))
                    time.sleep(0.2)
                    if len(kept) > 900:
                        kept = []
        else:
            self.register()
        while True:
            time.sleep(1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--resource", default="example.com/bad")
    parser.add_argument("--endpoint")
    parser.add_argument("--how", required=True)
    Plugin(parser.parse_args()).run()


main()
