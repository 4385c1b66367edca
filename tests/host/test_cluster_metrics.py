# SPDX-License-Identifier: Apache-2.0
"""/metrics of a node of a cluster: requests to the apiserver and certificates, under kubelet's names."""
import time

from coracle import check, contains, equal, until
from joined_node import Joined
from kube_peer import KubePeer
from test_usage import metric, well_formed


def page(node):
    text = node.request("GET", "/metrics")[1].decode()
    well_formed("/metrics", text)
    return text


def test_what_coracle_kube_tells(t):
    """answers by code, host and method; a certificate that is not rotated has no metric, one that is not there yet ends never"""
    peer = KubePeer(t)
    node = t.node(*peer.flags())
    link = peer.accept()
    check("rest_client_requests_total" not in page(node), "nothing was told")
    expires = int(time.time()) + 3600
    link.send("parts", requests=3, verbs={"GET": 3}, parts={},
              answers={"host": '10.0.0.1:6443"', "counts": [["GET", 200, 12], ["PATCH", 409, 1], ["GET", 0, 2]]},
              certificates={"client": {"errors": 1, "notAfter": expires}})
    text = until(lambda: page(node) if "rest_client" in page(node) else None, 10, "the figures")
    for line in ('rest_client_requests_total{code="200",host="10.0.0.1:6443\\"",method="GET"} 12',
                 'rest_client_requests_total{code="409",host="10.0.0.1:6443\\"",method="PATCH"} 1',
                 'rest_client_requests_total{code="<error>",host="10.0.0.1:6443\\"",method="GET"} 2',
                 "kubelet_certificate_manager_client_expiration_renew_errors 1"):
        contains(text, f"\n{line}\n")
    check(3500 < metric(text, "kubelet_certificate_manager_client_ttl_seconds") <= 3600, text)
    check("kubelet_certificate_manager_server" not in text and "kubelet_server_expiration" not in text, text)
    link.send("parts", requests=3, verbs={}, parts={}, answers={"host": 1, "counts": [[], None, {"a": 1}, ["GET"]]},
              certificates={"client": {"errors": 2, "notAfter": expires - 7200}, "server": {"errors": 3}})
    text = until(lambda: page(node) if "kubelet_server_expiration_renew_errors 3" in page(node) else None, 10, "the figures")
    contains(text, "\nkubelet_certificate_manager_server_ttl_seconds +Inf\n")
    contains(text, "\nkubelet_certificate_manager_client_ttl_seconds -3")
    equal(node.stop(), 0, "the exit code")


def test_requests_to_an_apiserver(t):
    """a node that joined has counted its requests"""
    joined = Joined(t)
    text = until(lambda: page(joined.node) if "rest_client" in page(joined.node) else None, 90, "the figures")
    host = joined.server.url.split("//")[1].strip("/")
    check(metric(text, "rest_client_requests_total", code="200", host=host, method="GET") >= 1, text)
    check(metric(text, "rest_client_requests_total", code="201", host=host, method="POST") >= 1, text)
    joined.stop()
