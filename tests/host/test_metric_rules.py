# SPDX-License-Identifier: Apache-2.0
"""All of /metrics keeps Prometheus's rules for names, helps and types; promtool is asked where it is installed."""
import os
import re
import shutil
import subprocess

import test_csi_usage
from coracle import check, container, equal, pod, until
from csi import claim_pod
from test_csi_stage import finish
from test_placement import FLAGS

# kubelet's own names break two of the rules, and dashboards know them.
KUBELETS = re.compile(r"^(kubelet|container|machine|node|pod|prober|rest_client|process|kubernetes)_")
ABBREVIATED = re.compile(r"_(s|ms|us|ns|sec|b|kb|mb|gb|kib|mib|gib|pct)(_total)?$")


def faults(text):
    """What breaks a rule, in words."""
    found, helps, types, seen = [], set(), {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            found += [f"{name}: two helps"] if name in helps else []
            found += [] if len(line.split(" ", 3)) == 4 else [f"{name}: no words of help"]
            helps.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            found += [f"{name}: two types"] if name in types else []
            types[name] = kind
            if not KUBELETS.match(name):
                found += [f"{name}: a counter without _total"] if kind == "counter" and not name.endswith("_total") else []
                found += [f"{name}: _total, but no counter"] if kind != "counter" and name.endswith("_total") else []
                found += [f"{name}: an abbreviated unit"] if ABBREVIATED.search(name) else []
        elif line:
            series = line.rpartition(" ")[0]
            name = series.partition("{")[0]
            family = name if name in types else re.sub(r"_(bucket|sum|count)$", "", name)
            found += [f"{series}: twice"] if series in seen else []
            found += [f"{name}: no type"] if family not in types else []
            found += [f"{name}: no help"] if family not in helps else []
            seen.add(series)
    return found


def test_rules(t):
    """with processors of their own, volumes of CSI drivers and networks, everything in /metrics is as Prometheus wants it"""
    own = os.sysconf("SC_NPROCESSORS_ONLN") > 1
    node, driver = test_csi_usage.begin(t, *(FLAGS if own else ()))
    sized = {"resources": {"limits": {"cpu": "1", "memory": "32Mi"}}} if own else {}
    node.put("pods.yaml", claim_pod("a", "data"), pod("own", containers=[container("main", **sized)]))
    node.wait_running("a", "own")
    until(lambda: test_csi_usage.own_lines(test_csi_usage.page(node)), 20, "figures of the volume")
    text = test_csi_usage.page(node)
    for name in ("coracle_network_plugin_duration_seconds_bucket", "kubelet_volume_stats_used_bytes", "kubelet_cpu_manager_pinning_requests_total"):
        check(f"\n{name}" in text, f"{name} is there")
    equal(faults(text), [], "rules that /metrics breaks")
    if shutil.which("promtool"):
        told = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        equal([line for line in told.stderr.splitlines() if not KUBELETS.match(line)], [], "promtool")
    finish(node, driver)
