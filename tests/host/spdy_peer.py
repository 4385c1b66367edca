# SPDX-License-Identifier: Apache-2.0
"""spdy_peer - the client's end of SPDY/3.1 as apiservers speak it to nodes: made from the specification, for tests.

    with SpdyPeer(send, receive) as peer:           two functions: bytes out; bytes in, b"" at the end
        error = peer.open(streamType="error")       a stream; waits for its SYN_REPLY
        peer.write(stdin, b"hello", fin=True)
        peer.read_all(stdout)                       up to the other end's FIN
"""
import struct
import zlib

WORDS = """options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location content-md5
content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since
last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer
transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie
keep-alive origin""".split()
TEXT = ("100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information"
        "204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
        "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, "
        "Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
        "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.")
DICTIONARY = b"".join(struct.pack(">I", len(w)) + w.encode() for w in (w.replace("_", " ") for w in WORDS)) + TEXT.encode()

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 1


class Reset(Exception):
    """The other end reset the stream."""


class SpdyPeer:
    def __init__(self, send, receive):
        self.send, self.receive = send, receive
        self.compress = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)
        self.decompress = zlib.decompressobj(15, DICTIONARY)
        self.rest = b""
        self.next = 1
        self.data, self.done, self.replied, self.reset = {}, set(), set(), {}
        self.goaway = None
        self.pongs, self.updates = [], []
        self.windows = None  # of streams, once keep_windows() was called
        self.ended = False

    # ---- out ----

    def control(self, kind, flags, body):
        self.send(struct.pack(">HHI", 0x8003, kind, flags << 24 | len(body)) + body)

    def start(self, fin=False, **headers):
        stream = self.next
        self.next += 2
        block = struct.pack(">I", len(headers))
        for name, value in headers.items():
            for part in (name.lower().encode(), str(value).encode()):
                block += struct.pack(">I", len(part)) + part
        packed = self.compress.compress(block) + self.compress.flush(zlib.Z_SYNC_FLUSH)
        self.control(SYN_STREAM, FIN if fin else 0, struct.pack(">IIH", stream, 0, 0) + packed)
        self.data[stream] = b""
        return stream

    def open(self, fin=False, **headers):
        stream = self.start(fin, **headers)
        while stream not in self.replied:
            self.step()
        return stream

    def write(self, stream, data, fin=False):
        while True:
            piece, data = data[:60000], data[60000:]
            self.send(struct.pack(">II", stream, (FIN << 24 if fin and not data else 0) | len(piece)) + piece)
            if not data:
                return

    def ping(self, number):
        self.control(PING, 0, struct.pack(">I", number))

    def window(self, stream, more):
        self.control(WINDOW_UPDATE, 0, struct.pack(">II", stream, more))

    # ---- in ----

    def need(self, n):
        while len(self.rest) < n:
            more = self.receive()
            if not more:
                self.ended = True
                raise EOFError(f"the connection ended; {len(self.rest)} of {n} bytes")
            self.rest += more
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def step(self):
        """One frame."""
        first, second = struct.unpack(">II", self.need(8))
        flags, body = second >> 24, self.need(second & 0xffffff)
        if not first & 0x80000000:
            self.data[first] += body
            if flags & FIN:
                self.done.add(first)
            return
        assert first >> 16 == 0x8003, hex(first)
        kind = first & 0xffff
        numbers = struct.unpack(f">{len(body) // 4}I", body[:len(body) // 4 * 4])
        if kind == SYN_REPLY:
            block = self.decompress.decompress(body[4:])
            assert struct.unpack(">I", block[:4])[0] == 0, block
            self.replied.add(numbers[0])
        elif kind == RST_STREAM:
            self.reset[numbers[0]] = numbers[1]
            self.done.add(numbers[0])
            self.replied.add(numbers[0])
        elif kind == PING:
            self.pongs.append(numbers[0])
        elif kind == GOAWAY:
            self.goaway = numbers
        elif kind == WINDOW_UPDATE:
            self.updates.append(numbers)
        else:
            raise AssertionError(f"a frame of type {kind}")

    def read_all(self, *streams):
        while not set(streams) <= self.done:
            self.step()
        for stream in streams:
            if stream in self.reset:
                raise Reset(self.reset[stream])
        return self.data[streams[0]] if len(streams) == 1 else [self.data[s] for s in streams]

    def read_until(self, stream, text):
        while text not in self.data[stream]:
            if stream in self.done:
                raise EOFError(f"the stream ended: {self.data[stream]!r}")
            self.step()
        return self.data[stream]
