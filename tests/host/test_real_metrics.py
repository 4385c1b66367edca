# SPDX-License-Identifier: Apache-2.0
"""What metrics-server and others read of the node's port, allowed by a real apiserver."""
import contextlib
import http.client
import json
import ssl

import metrics_server
from coracle import check, container, contains, equal, pod, shell, until
from test_real_cluster import ADDRESS, PODS, bound, condition, joined

PAGE = "/metrics/resource"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1"


def ask(plane, path, token=None):
    """(code, text) of the node's port, without a certificate."""
    context = ssl.create_default_context(cafile=plane.keys.ca)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # metrics-server's --kubelet-insecure-tls: it signs its own
    with contextlib.closing(http.client.HTTPSConnection(ADDRESS, 10250, context=context, timeout=20)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def account(api, name, *resources):
    """A token of a ServiceAccount that may get these resources."""
    api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    if resources:
        api.create(f"{RIGHTS}/clusterroles", {"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": list(resources), "verbs": ["get"]}]})
        api.create(f"{RIGHTS}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                                                     "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}]})
    code, text = api("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    equal(code, 201, text)
    return json.loads(text)["status"]["token"]




def test_metrics_server(t):
    """metrics-server's rights suffice for its page, and its rules derive the usage from it: directly and through the apiserver"""
    plane, api, node = joined(t)
    token = account(api, "metrics", "nodes/metrics")
    for name, command in (("busy", "while :; do :; done"), ("calm", "x=$(head -c 8000000 /dev/zero | tr '\\0' x); sleep 1000 & wait")):
        api.create(PODS, bound(pod(name, container(command=shell(command)), automountServiceAccountToken=False, terminationGracePeriodSeconds=0)))
    for name in ("busy", "calm"):
        until(lambda n=name: condition(api.get(f"{PODS}/{n}"), "Ready") == "True", 20, f"{name} is Ready")
    seen = []

    def scrape(text):
        seen.append(metrics_server.parse(text))
        return seen[-1]
    until(lambda: len(found := scrape(ask(plane, PAGE, token)[1])["containers"]) == 2 and found["default", "calm", "main"].memory > 8_000_000, 30,
          lambda: ask(plane, PAGE, token))
    first = seen[-1]
    usage = until(lambda: (u := metrics_server.usage(first, scrape(ask(plane, PAGE, token)[1]))) and len(u) == 3 and
                  seen[-1]["node"].ms - first["node"].ms >= 3000 and u, 20, lambda: f"two scrapes: {first} {seen[-1]}")
    busy, calm = usage["default", "busy", "main"], usage["default", "calm", "main"]
    check(0.1 < busy[0] < 1.2 and calm[0] < 0.1, f"processors: {usage}")
    check(100_000 < busy[1] < calm[1] and calm[1] > 8_000_000, f"memory: {usage}")
    check(usage["node"][0] >= 0.8 * busy[0] and usage["node"][1] > calm[1], f"the node: {usage}")

    code, text = api("GET", f"/api/v1/nodes/test-node/proxy{PAGE}")
    equal(code, 200, text)
    equal(set(metrics_server.parse(text)["containers"]), {("default", "busy", "main"), ("default", "calm", "main")}, "through the apiserver")
    for path, name in (("/metrics/probes", "process_start_time_seconds"), ("/metrics/slis", "process_start_time_seconds"), ("/metrics/cadvisor", "machine_cpu_cores")):
        code, text = ask(plane, path, token)
        equal(code, 200, path)
        contains(text, name, path)
    equal(node.stop(), 0, "the exit code")
    plane.stop()


def test_reviews(t):
    """TokenReview and SubjectAccessReview of a real apiserver: 200, 401 and 403"""
    plane, api, node = joined(t)
    reader, other = account(api, "reader", "nodes/metrics"), account(api, "other")
    equal(until(lambda: (got := ask(plane, PAGE, reader))[0] != 403 and got, 10, "the right")[0], 200, "with the right")  # RBAC follows its objects
    equal(ask(plane, "/stats/summary", reader)[0], 403, "another subresource")
    code, text = ask(plane, PAGE, other)
    equal(code, 403, text)
    contains(text, "Forbidden (user=system:serviceaccount:default:other, verb=get, resource=nodes, subresource(s)=[metrics])", "the text")
    for token, what in ((None, "no token"), ("x.y.z", "no token of this cluster"), (reader[:-8] + "AAAAAAAA", "another signature")):
        code, text = ask(plane, PAGE, token)
        equal((code, text.strip()), (401, "Unauthorized"), what)
    code, text = api("DELETE", "/api/v1/namespaces/default/serviceaccounts/other")
    equal(code, 200, text)
    equal(ask(plane, PAGE, other)[0], 403, "the review is kept for cacheTTL")
    equal(node.stop(), 0, "the exit code")
    plane.stop()
