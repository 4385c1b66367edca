# SPDX-License-Identifier: Apache-2.0
"""/metrics/probes and /metrics/slis of the node's port."""
import re

from coracle import check, container, contains, equal, pod, until
from test_node_port import port_of


def value(text, series, **labels):
    """The value of the series with (at least) these labels, or 0."""
    for line in text.splitlines():
        head, _, number = line.rpartition(" ")
        if head.partition("{")[0] == series and all(f'{k}="{v}"' in head for k, v in labels.items()):
            return float(number)
    return 0


def test_probe_metrics(t):
    """each container's checks are counted by type and result, and leave with the pod"""
    with port_of(t) as (node, port):
        node.put("probed.yaml", pod("probed", container(readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1},
                                                        livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 100}),
                                    terminationGracePeriodSeconds=0))
        node.wait_running("probed")

        def page():
            status, headers, text = port.ask("/metrics/probes")
            equal(status, 200, "status")
            contains(headers["Content-Type"], "text/plain", "the type")
            return text
        until(lambda: value(page(), "prober_probe_total", probe_type="Readiness", result="successful") >= 2, 20, page)
        until(lambda: value(page(), "prober_probe_total", probe_type="Liveness", result="failed") >= 1, 20, page)
        text = page()
        uid = node.pod("probed").uid
        check(re.search(rf'^prober_probe_total\{{container="main",namespace="default",pod="probed",pod_uid="{uid}",probe_type="Readiness",result="successful"\}} \d+$',
                        text, re.M), text)
        equal(value(text, "prober_probe_duration_seconds_bucket", probe_type="Readiness", le="+Inf"),
              value(text, "prober_probe_duration_seconds_count", probe_type="Readiness"), "the last bucket")
        check(0 < value(text, "prober_probe_duration_seconds_sum", probe_type="Readiness") < 60, text)
        check(value(text, "process_start_time_seconds") > 1e9, text)
        check('result="unknown"' not in text and 'probe_type="Startup"' not in text, text)
        node.remove("probed.yaml")
        node.wait_gone("probed")
        check("probed" not in page(), page)
        node.stop()


def test_health_metrics(t):
    """/metrics/slis counts what /healthz said, also that the daemon did not answer"""
    with port_of(t) as (node, port):
        check("healthcheck" not in port.ask("/metrics/slis")[2], "nothing was asked")
        for path in ("/healthz", "/healthz", "/healthz/ping"):
            equal(port.ask(path)[0], 200, path)
        status, headers, text = port.ask("/metrics/slis")
        equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"), "the page")
        for name in ("ping", "log", "syncloop"):
            equal(value(text, "kubernetes_healthchecks_total", name=name, status="success", type="healthz"), 2, name)
            equal(value(text, "kubernetes_healthcheck", name=name, type="healthz"), 1, name)
        equal(port.ask("/metrics/slis", "DELETE")[0], 405, "a reset")
        equal(port.ask("/metrics/slis", client=None)[0], 401, "nobody")
        port.serve = False  # the daemon gives no connection
        equal(port.ask("/healthz")[0], 503, "without the daemon")
        text = port.ask("/metrics/slis")[2]
        equal(value(text, "kubernetes_healthchecks_total", name="syncloop", status="error"), 1, text)
        equal(value(text, "kubernetes_healthcheck", name="syncloop"), 0, text)
        equal(value(text, "kubernetes_healthchecks_total", name="ping", status="success"), 3, text)
        node.stop()
