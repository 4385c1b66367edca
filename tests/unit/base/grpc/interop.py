#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""interop serve|call SOCKET - the other end of test_interop.c, on python3-grpcio: gRPC's core, which shares no code
with ours.  Messages are plain bytes.  `call` exits with 0 when every answer was right."""
import sys
import threading
import time
from concurrent import futures

import grpc

BIG = 4 * 1024 * 1024
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


# ---- the server

def echo(request, context):
    return request


def large(request, context):
    return b"x" * int(request)


def count(request, context):
    for i in range(int(request)):
        yield b"%d" % i


def flood(request, context):
    """As many messages of 64 KiB as are asked for."""
    for _ in range(int(request)):
        yield b"y" * 65536


cancelled = threading.Event()


def hold(request, context):
    context.add_callback(cancelled.set)
    for _ in range(600):
        if not context.is_active():
            break
        time.sleep(0.05)
    return b""


def was_cancelled(request, context):
    return b"yes" if cancelled.wait(10) else b"no"


def fail(request, context):
    context.set_trailing_metadata((("grpc-status-details-bin", b"\x08\x09\x00details"),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "100% \u00e9\nno")


def metadata(request, context):
    got = dict(context.invocation_metadata())
    context.send_initial_metadata((("x-first", "1"), ("x-first-bin", b"\x00\xff")))
    context.set_trailing_metadata((("x-last-bin", b"\x01\x02\x03"),))
    return got["x-plain"].encode() + b" " + got["x-test-bin"] + b" " + got["user-agent"].split()[0].encode()


def remaining(request, context):
    return b"%d" % round(context.time_remaining() * 10)


def zipped(request, context):
    context.set_compression(grpc.Compression.Gzip)
    return b"z" * 10000


def serve(path):
    running = []  # the server

    def leave(request, context):
        """The GOAWAY is on its way before the answer."""
        running[0].stop(5)
        time.sleep(0.2)
        return b""

    unary = {"Echo": echo, "Large": large, "Hold": hold, "WasCancelled": was_cancelled, "Fail": fail, "Metadata": metadata,
             "Remaining": remaining, "Zipped": zipped, "Leave": leave}
    streams = {"Count": count, "Flood": flood}
    handlers = {name: grpc.unary_unary_rpc_method_handler(f) for name, f in unary.items()}
    handlers.update({name: grpc.unary_stream_rpc_method_handler(f) for name, f in streams.items()})
    while True:
        server = grpc.server(futures.ThreadPoolExecutor(16), options=UNLIMITED)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Interop", handlers),))
        server.add_insecure_port("unix:" + path)
        running[:] = [server]
        server.start()
        server.wait_for_termination()


# ---- the client

def expect(value, wanted):
    if value != wanted:
        raise AssertionError(f"{value!r} is not {wanted!r}")


def refusal(call, *args, **named):
    try:
        call(*args, **named)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    raise AssertionError("the call was answered")


def unary_calls(channel):
    call = channel.unary_unary("/test.Pair/Echo")
    expect(call(b"hello", timeout=10), b"hello")
    expect(call(b""), b"")
    expect(call(b"z" * BIG, timeout=30), b"z" * BIG)
    expect(refusal(call, b"z" * (BIG + 1), timeout=30),
           ("RESOURCE_EXHAUSTED", f"grpc: received message larger than max ({BIG + 1} vs. {BIG})"))
    waiting = [call.future(b"%d" % i, timeout=30) for i in range(300)]
    for i, one in enumerate(waiting):
        expect(one.result(), b"%d" % i)


def streams(channel):
    call = channel.unary_stream("/test.Pair/Count")
    expect(list(call(b"9", timeout=10)), [b"%d" % i for i in range(9)])
    expect(list(call(b"0", timeout=10)), [])
    opened = channel.unary_stream("/test.Pair/Open")(b"")
    time.sleep(0.1)
    opened.cancel()
    expect(opened.code(), grpc.StatusCode.CANCELLED)


def refusals(channel):
    expect(refusal(channel.unary_unary("/test.Pair/Nothing"), b""),
           ("UNIMPLEMENTED", "unknown method Nothing for service test.Pair"))
    expect(refusal(channel.unary_unary("/test.Other/Echo"), b""), ("UNIMPLEMENTED", "unknown service test.Other"))
    # Whose clock is first: each end has its own words.
    expect(refusal(channel.unary_unary("/test.Pair/Hold"), b"", timeout=0.3)[0], "DEADLINE_EXCEEDED")
    expect(refusal(channel.unary_unary("/test.Pair/Echo"), b"c" * 10000, compression=grpc.Compression.Gzip),
           ("UNIMPLEMENTED", 'grpc: Decompressor is not installed for grpc-encoding "gzip"'))
    expect(refusal(channel.stream_unary("/test.Pair/Echo"), iter(())),
           ("INTERNAL", "cardinality violation: received no request message from non-client-streaming RPC"))
    try:
        channel.unary_unary("/test.Pair/Fail")(b"\x08\x09\x00d", timeout=10)
        raise AssertionError("no failure")
    except grpc.RpcError as error:
        expect(error.code(), grpc.StatusCode.FAILED_PRECONDITION)
        expect(error.details(), "100% \u00e9\nno")
        expect(dict(error.trailing_metadata())["grpc-status-details-bin"], b"\x08\x09\x00d")


def metadata_call(channel):
    call = channel.unary_unary("/test.Pair/Metadata")
    expect(call(b"", metadata=(("x-test-bin", b"a\nb"), ("x-other", "1"))), b"a\nb")


def call_all(path):
    with grpc.insecure_channel("unix:" + path, options=UNLIMITED) as channel:
        unary_calls(channel)
        streams(channel)
        refusals(channel)
        metadata_call(channel)


if __name__ == "__main__":
    {"serve": serve, "call": call_all}[sys.argv[1]](sys.argv[2])
