#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""grpc_client - calls of podresources ("version": v1 or v1alpha1), and messages decoded: a line of JSON in, one out.

    {"call": "List", "socket": "/.../kubelet.sock"}    {"call": "Get", "socket": ..., "pod_name": "a", "pod_namespace": "b"}
    {"decode": "ContainerAllocateResponse", "data": "<base64>"}
"""
import base64
import json
import os
import sys

import grpc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from grpc_messages import as_json, dp, res, res_alpha  # noqa: E402  (beside this file)

CALLS = {"List": ("ListPodResourcesRequest", "ListPodResourcesResponse"),
         "GetAllocatableResources": ("AllocatableResourcesRequest", "AllocatableResourcesResponse"),
         "Get": ("GetPodResourcesRequest", "GetPodResourcesResponse")}


def call(name, socket, authority="localhost", version="v1", **fields):
    request, response = (getattr(res if version == "v1" else res_alpha, n) for n in CALLS[name])
    try:  # a channel a call: the agent may have been restarted
        with grpc.insecure_channel("unix:" + socket, options=[("grpc.default_authority", authority)]) as channel:
            method = channel.unary_unary(f"/{version}.PodResourcesLister/{name}", lambda m: m.SerializeToString(), response.FromString)
            answer = method(request(**fields), timeout=10)
            said = {"response": as_json(answer)}
            size = answer.ByteSize()
            answer.DiscardUnknownFields()
            return said if answer.ByteSize() == size else {"error": "fields that this version does not have"}
    except grpc.RpcError as error:
        return {"code": "".join(w.capitalize() for w in error.code().name.split("_")), "error": error.details()}


def main():
    for line in sys.stdin:
        asked = json.loads(line)
        if "decode" in asked:
            answer = as_json(getattr(dp, asked["decode"]).FromString(base64.b64decode(asked["data"])))
        else:
            answer = call(asked.pop("call"), asked.pop("socket"), **asked)
        print(json.dumps(answer), flush=True)


main()
