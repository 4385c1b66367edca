# SPDX-License-Identifier: Apache-2.0
"""api_front - connections of the scripted apiserver: TLS, HTTP/1.1 and HTTP/2 (python3-h2), on asyncio.

`handle(request, reply)` is a coroutine for each request.  While `front.frozen` is set, nothing is read or written, and
connections stay open, as behind a partition.  `date_s` shifts the clock of the head's Date.
"""
import asyncio
import email.utils
import socket
import ssl
import sys
import time

# Debian's modules, also for a Python that is not Debian's.
sys.path.append("/usr/lib/python3/dist-packages")
try:
    import h2.config
    import h2.connection
    import h2.events
    import h2.exceptions
except ImportError:
    h2 = None

HEAD_MAX = 1 << 16


class Request:
    def __init__(self, method, target, headers, body, connection):
        self.method, self.target, self.headers, self.body, self.connection = method, target, headers, body, connection
        self.path, _, self.query = target.partition("?")


class Gone(Exception):
    """The client is gone, or the connection was dropped."""


class Front:
    def __init__(self, handle):
        self.handle, self.frozen, self.connections, self.opened, self.pings, self.date_s = handle, False, set(), 0, 0, 0
        self.thawed = asyncio.Event()
        self.thawed.set()

    def freeze(self, frozen):
        self.frozen = frozen
        (self.thawed.clear if frozen else self.thawed.set)()

    async def serve(self, reader, writer):
        self.opened += 1
        # asyncio leaves Nagle's algorithm on for a listener that was made by create_server(): 40 ms for each answer.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = writer.get_extra_info("ssl_object")
        two = tls is not None and tls.selected_alpn_protocol() == "h2"
        connection = (Two if two else One)(self, reader, writer, self.opened)
        self.connections.add(connection)
        try:
            await connection.run()
        except (Gone, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError, OSError):
            pass
        finally:
            self.connections.discard(connection)
            connection.drop()


class Connection:
    http = ""

    def __init__(self, front, reader, writer, number):
        self.front, self.reader, self.writer, self.number, self.closed = front, reader, writer, number, False
        self.hears = asyncio.Event()  # not set: nothing is read or written
        self.hears.set()
        tls = writer.get_extra_info("ssl_object")
        subject = dict(x for part in (tls.getpeercert() or {}).get("subject", ()) for x in part) if tls is not None else {}
        self.common_name = subject.get("commonName")
        self.sni = getattr(tls, "sni_of_client", None) if tls is not None else None

    def deafen(self):
        self.hears.clear()

    def drop(self):
        """At once, without a farewell."""
        self.closed = True
        self.hears.set()
        self.writer.transport.abort()

    async def write(self, data):
        await self.front.thawed.wait()
        await self.hears.wait()
        if self.closed or self.writer.transport.is_closing():
            raise Gone
        self.writer.write(data)
        await self.writer.drain()

    async def read(self, n=65536):
        data = await self.reader.read(n)
        await self.front.thawed.wait()
        await self.hears.wait()
        if not data:
            raise Gone
        return data


class One(Connection):
    """HTTP/1.1, one request after the other."""
    http = "1.1"

    async def run(self):
        while not self.closed:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            await self.front.thawed.wait()
            method, target, _ = head[0].split(" ", 2)
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            reply = OneReply(self)
            await self.front.handle(Request(method, target, headers, body, self), reply)
            await reply.end()


def date(front):
    return email.utils.formatdate(time.time() + front.date_s, usegmt=True)


class OneReply:
    def __init__(self, connection):
        self.connection, self.begun, self.ended, self.chunked = connection, False, False, False

    async def head(self, status, headers, length=None):
        self.begun, self.chunked = True, length is None
        lines = [f"HTTP/1.1 {status} X", f"Date: {date(self.connection.front)}"] + [f"{k}: {v}" for k, v in headers.items()]
        lines.append("Transfer-Encoding: chunked" if self.chunked else f"Content-Length: {length}")
        await self.connection.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def data(self, data):
        await self.connection.write(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)

    async def truncated(self, data):
        """A chunk that promises more than comes; then the connection ends."""
        await self.connection.write(b"%x\r\n%s" % (len(data) + 100, data))
        await asyncio.sleep(0.05)
        self.connection.drop()

    async def end(self):
        if self.begun and not self.ended and self.chunked and not self.connection.closed:
            await self.connection.write(b"0\r\n\r\n")
        self.ended = True


class Two(Connection):
    """HTTP/2: requests side by side."""
    http = "2"

    async def run(self):
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        self.streams, self.room = {}, asyncio.Event()
        self.h2.initiate_connection()
        await self.flush()
        try:
            while not self.closed:
                data = await self.read()
                for event in self.h2.receive_data(data):
                    self.on_event(event)
                await self.flush()
        except h2.exceptions.ProtocolError:
            pass
        finally:
            for _, _, task in self.streams.values():
                if task is not None:
                    task.cancel()

    async def flush(self):
        data = self.h2.data_to_send()
        if data:
            await self.write(data)

    def on_event(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.streams[event.stream_id] = [dict(event.headers), bytearray(), None]
        elif isinstance(event, h2.events.DataReceived):
            self.streams[event.stream_id][1] += event.data
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            stream = self.streams[event.stream_id]
            stream[2] = asyncio.ensure_future(self.one(event.stream_id, stream))
        elif isinstance(event, h2.events.StreamReset):
            _, _, task = self.streams.pop(event.stream_id, (None, None, None))
            if task is not None:
                task.cancel()
        elif isinstance(event, h2.events.PingReceived):  # answered by h2
            self.front.pings += 1
        elif isinstance(event, h2.events.WindowUpdated):
            self.room.set()

    async def one(self, number, stream):
        headers, body, _ = stream
        reply = TwoReply(self, number)
        try:
            headers.setdefault("host", headers.get(":authority", ""))
            await self.front.handle(Request(headers[":method"], headers[":path"], headers, bytes(body), self), reply)
            await reply.end()
        except (Gone, ConnectionError, OSError, h2.exceptions.ProtocolError):
            pass
        finally:
            self.streams.pop(number, None)


class TwoReply:
    def __init__(self, connection, number):
        self.connection, self.number, self.begun, self.ended = connection, number, False, False

    async def head(self, status, headers, length=None):
        self.begun = True
        fields = [(":status", str(status)), ("date", date(self.connection.front))] + [(k.lower(), str(v)) for k, v in headers.items()]
        if length is not None:
            fields.append(("content-length", str(length)))
        self.connection.h2.send_headers(self.number, fields)
        await self.connection.flush()

    async def data(self, data):
        c = self.connection
        while data:
            n = min(c.h2.local_flow_control_window(self.number), c.h2.max_outbound_frame_size, len(data))
            if n == 0:
                c.room.clear()
                await c.room.wait()
                continue
            c.h2.send_data(self.number, data[:n])
            data = data[n:]
            await c.flush()

    async def truncated(self, data):
        await self.data(data)
        self.connection.h2.reset_stream(self.number, 2)  # INTERNAL_ERROR
        self.ended = True
        await self.connection.flush()

    async def end(self):
        if self.begun and not self.ended:
            self.connection.h2.end_stream(self.number)
            await self.connection.flush()
        self.ended = True
