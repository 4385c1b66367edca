"""Many pods at once."""
import os
import time

from coracle import check, equal, links, pod, until


def test_hundred(t):
    """100 one-container pods dropped at once all run, and removing them leaves nothing"""
    node = t.node("--max-pods", "120")
    node.import_image()
    names = [f"many-{i}" for i in range(100)]
    descriptors = len(os.listdir(f"/proc/{node.process.pid}/fd"))
    start = time.monotonic()
    for name in names:
        node.put(f"{name}.yaml", pod(name, terminationGracePeriodSeconds=3))
    pods = node.watch(lambda pods: pods if len(pods) == 100 and all(p.ready for p in pods.values()) else None, 100,
                      "100 pods ready")
    print(f"100 pods ready after {time.monotonic() - start:.1f} s")
    equal(len({p.ip for p in pods.values()}), 100, "addresses")
    equal(sum(p.restarts() for p in pods.values()), 0, "restarts")
    some = [pods["default", f"many-{i}"] for i in (0, 42, 99)]
    start = time.monotonic()
    node.remove(*[f"{name}.yaml" for name in names])
    node.watch(lambda pods: not pods, 100, "all pods gone")
    print(f"removed after {time.monotonic() - start:.1f} s")
    for p in some:
        node.wait_no_traces(p)
    until(lambda: not [link for link in links() if link.startswith("veth")], 5, "no veth link left")
    equal(os.listdir(f"{node.root_dir}/pods") if os.path.isdir(f"{node.root_dir}/pods") else [], [], "pod folders")
    equal(os.listdir(node.pod_logs), [], "log folders")
    now = until(lambda: (n := len(os.listdir(f"/proc/{node.process.pid}/fd"))) <= descriptors + 8 and n, 5,
                f"descriptors of the daemon back to about {descriptors}")
    check(now, "descriptors")
    node.stop()


test_hundred.seconds = 60


def test_max_pods(t):
    """a pod beyond --max-pods is refused with kubelet's reason, the others run"""
    node = t.node("--max-pods", "2")
    node.import_image()
    node.put("a.yaml", pod("a"))
    node.put("b.yaml", pod("b"))
    node.wait_running("a", "b")
    node.put("c.yaml", pod("c"))
    refused = node.wait_phase("c", "Failed")
    equal(refused.status.get("reason"), "OutOfpods", "reason")
    node.wait_running("a", "b")
    node.stop()
