#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""cri_remove - removes pods' sandboxes from a CRI runtime, with all that is in them: `cri_remove SOCKET ID...`

kubelet does so by itself, once a minute; the bench does not wait for that.  An id that is no sandbox is none of the
runtime's, which then has nothing to do.  Needs Debian's python3-grpcio.
"""
import sys

import grpc

REMOVE = "/runtime.v1.RuntimeService/RemovePodSandbox"


def request(sandbox):
    """RemovePodSandboxRequest: pod_sandbox_id is its field 1; ids are shorter than 128 bytes."""
    return bytes((0x0a, len(sandbox))) + sandbox.encode()


def main():
    with grpc.insecure_channel("unix:" + sys.argv[1], options=[("grpc.default_authority", "localhost")]) as channel:
        remove = channel.unary_unary(REMOVE, None, None)
        for sandbox in sys.argv[2:]:
            remove(request(sandbox), timeout=60)


main()
