# SPDX-License-Identifier: Apache-2.0
"""The pods' network from outside: real packets, faults of lists and plugins, and self-healing."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from coracle import check, container, contains, equal, firewall, links, pod, read, run, until

SERVER = """
import socket, sys, threading
tcp = socket.socket(); tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); tcp.bind(("0.0.0.0", 80)); tcp.listen(50)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("0.0.0.0", 53))
def answer():
    while True:
        data, who = udp.recvfrom(2000); udp.sendto(data.upper(), who)
threading.Thread(target=answer, daemon=True).start()
print("ready", flush=True)
while True:
    c, who = tcp.accept(); c.sendall(who[0].encode()); c.close()
"""
# Sends for some seconds, or receives until the other side is done: bytes a second after the first 0.5 s.
RECEIVE = """
import socket, sys, time
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", int(sys.argv[1]))); s.listen(1)
print("ready", flush=True)
c, _ = s.accept(); first = time.monotonic(); n = 0; last = first; second = 0
while True:
    data = c.recv(1 << 16)
    if not data: break
    last = time.monotonic(); n += len(data)
    if last - first <= 1: second += len(data)
print(n, last - first, second, flush=True)
"""
SEND = """
import socket, sys, time
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end: s.send(b"x" * 8192)
s.close()
"""

# SCTP packets of our own making, since kernels are built without its sockets: an INIT is answered by an INIT ACK.  Raw sockets see
# what came through NAT, with the checksum as it was left.
SCTP = """
import socket, struct, sys
def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8): crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xffffffff)
def packet(source, to, tag, chunk):
    body = struct.pack("!BBHIIHHI", chunk, 0, 20, 77, 65536, 1, 1, 1)
    head = struct.pack("!HHI", source, to, tag)
    return head + crc32c(head + bytes(4) + body) + body
def receive(s, port, chunk):
    while True:
        data, who = s.recvfrom(2000)
        data = data[(data[0] & 15) * 4:]
        source, to = struct.unpack("!HH", data[:4])
        if to == port and data[12] == chunk:
            assert crc32c(data[:8] + bytes(4) + data[12:]) == data[8:12], "checksum"
            return who[0], source
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 132); s.settimeout(10)
if sys.argv[1] == "server":
    print("ready", flush=True)
    who, source = receive(s, 9, 1)
    s.sendto(packet(9, source, 77, 2), (who, 0)); print(who, flush=True)
else:
    s.sendto(packet(40000, int(sys.argv[3]), 0, 1), (sys.argv[2], 0))
    print(*receive(s, 40000, 2))
"""


class Inside:
    """Python programs in the network namespaces of pods (None: the node's), ended with the test."""

    def __init__(self, node):
        self.node, self.started = node, []

    def argv(self, p, text, *args):
        enter = ["nsenter", f"--net=/proc/{self.node.pid(p)}/ns/net"] if p is not None else []
        return [*enter, sys.executable, "-c", text, *map(str, args)]

    def start(self, p, text, *args):
        process = subprocess.Popen(self.argv(p, text, *args), stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        equal(process.stdout.readline().strip(), "ready", "the program")
        return process

    def run(self, p, text, *args, timeout=30):
        return subprocess.run(self.argv(p, text, *args), stdout=subprocess.PIPE, text=True, timeout=timeout, check=False).stdout

    def end(self):
        for process in self.started:
            process.kill()
            process.wait()


def get(inside, p, host, port):
    return inside.run(p, "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).recv(100).decode())",
                      host, port).strip()


def ask(inside, p, host, port):
    return inside.run(p, "import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n"
                         "s.sendto(b'hello', (sys.argv[1], int(sys.argv[2]))); print(s.recv(100).decode())", host, port).strip()


def metrics(node):
    code, body = node.request("GET", "/metrics")
    equal(code, 200, "GET /metrics")
    return body.decode()


def explain(node, *what):
    return node.cli("explain", *what, ok=False).stdout


def ports(*of):
    return [{"containerPort": c, "hostPort": h, "protocol": protocol, **({"hostIP": ip} if ip else {})}
            for c, h, protocol, ip in of]


def put_list(t, name, text):
    path = f"{t.scratch}/tmp/list"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text if isinstance(text, str) else json.dumps(text))
    os.rename(path, f"{t.scratch}/cni/{name}")


def usual_list():
    return json.loads(read(os.path.join(os.path.dirname(__file__), "../../examples/cni/10-coracle.conflist")))


def rates(inside, sender, receiver, host, port, seconds):
    """Bits a second over the whole time, and in the first second."""
    server = inside.start(receiver, RECEIVE, port)
    inside.run(sender, SEND, host, port, seconds, timeout=seconds + 60)
    n, took, second = server.stdout.readline().split()
    return int(n) * 8 / float(took), int(second) * 8


def test_real_packets(t):
    """pod to pod, and host to pod by hostPort, over TCP, UDP and SCTP, also by one address only; after the pod nothing is left"""
    node = t.node()
    run("ip", "addr", "add", "192.0.2.10/32", "dev", "lo")
    run("ip", "addr", "add", "192.0.2.11/32", "dev", "lo")
    node.import_image()
    node.put("a.yaml", pod("a", container(ports=ports((80, 8080, "TCP", None), (53, 5300, "UDP", None),
                                                      (80, 8081, "TCP", "192.0.2.10"), (9, 9009, "SCTP", None)))))
    node.put("b.yaml", pod("b", container()))
    a, b = node.wait_running("a"), node.wait_running("b")
    inside = Inside(node)
    try:
        inside.start(a, SERVER)
        equal(get(inside, b, a.ip, 80), b.ip, "pod to pod")
        equal(ask(inside, b, a.ip, 53), "HELLO", "pod to pod, UDP")
        check(get(inside, None, "192.0.2.10", 8080), "host to pod by its host port")
        equal(ask(inside, None, "192.0.2.11", 5300), "HELLO", "host to pod by its host port, UDP")
        check(get(inside, None, "192.0.2.10", 8081), "host port of one address")
        equal(get(inside, None, "192.0.2.11", 8081), "", "host port of another address")
        inside.start(a, SCTP, "server")
        equal(inside.run(None, SCTP, "client", "192.0.2.10", 9009).split(), ["192.0.2.10", "9009"], "host to pod, SCTP, and who answered")
        sent = re.search(r'container_network_transmit_bytes_total{interface="eth0",namespace="default",pod="a"} (\d+)', metrics(node))
        check(sent and int(sent.group(1)) > 100, lambda: metrics(node))
    finally:
        inside.end()
    node.put("c.yaml", pod("c", container(ports=ports((1, 8080, "TCP", None)))))
    c = node.wait_pod("c", lambda p: p.phase == "Failed", 10, "c is refused")
    contains(c.status["message"], "8080/TCP is pod default/a's")
    node.remove("a.yaml", "b.yaml", "c.yaml")
    node.wait_gone("a", "b", "c")
    for p in (a, b):
        node.wait_no_traces(p)
    equal(node.stop(), 0, "exit code")


def test_bandwidth(t):
    """a pod behind the bandwidth plugin is held to its limit within 10% over 5 s, each way, from the first second on"""
    node = t.node()
    node.import_image()
    down, up = 8_000_000, 4_000_000
    node.put("a.yaml", pod("a", container(), annotations={"kubernetes.io/ingress-bandwidth": "8M",
                                                         "kubernetes.io/egress-bandwidth": "4M"}))
    node.put("wrong.yaml", pod("wrong", container(), annotations={"kubernetes.io/egress-bandwidth": "999"}))
    a = node.wait_running("a")
    inside = Inside(node)
    try:
        for limit, sender, receiver, host in ((down, None, a, a.ip), (up, a, None, "10.77.0.1")):
            rate, first = rates(inside, sender, receiver, host, 9000, 5)
            # What was counted is the payload of TCP: 1448 of 1514 bytes of a frame.
            rate, first = rate * 1514 / 1448, first * 1514 / 1448
            check(abs(rate - limit) <= limit / 10, f"{rate / 1e6:.2f} Mbit/s with a limit of {limit / 1e6:.0f}")
            check(first <= limit * 1.15, f"{first / 1e6:.2f} Mbit in the first second with a limit of {limit / 1e6:.0f}")
    finally:
        inside.end()
    until(lambda: "resource is unreasonably small (< 1kbit)" in explain(node, "pod", "wrong"), 10, "explain names the annotation")
    wrong = node.pod("wrong")
    contains(wrong.condition("PodReadyToStartContainers").get("message", ""), "unreasonably small", "condition")
    node.remove("a.yaml", "wrong.yaml")
    node.wait_gone("a", "wrong")
    node.wait_no_traces(a)
    check(not [line for line in run("ip", "-o", "link").stdout.splitlines() if "ifb" in line or "bwp" in line], "an ifb is left")
    equal(node.stop(), 0, "exit code")


def test_lost_interface(t):
    """a living pod gets back an interface that it lost while no agent ran: same address, same container, working port"""
    node = t.node()
    run("ip", "addr", "add", "192.0.2.10/32", "dev", "lo")
    node.import_image()
    node.put("a.yaml", pod("a", container(ports=ports((80, 8080, "TCP", None)))))
    node.put("b.yaml", pod("b", container()))
    a, b = node.wait_running("a"), node.wait_running("b")
    cid = a.container_id()
    node.kill()
    run("nsenter", f"--net=/proc/{node.pid(a)}/ns/net", "ip", "link", "del", "eth0")
    node.start()
    until(lambda: "1 attached again" in explain(node, "node"), 15, "explain node tells what was healed")
    again = node.wait_pod("a", lambda p: p.condition("PodReadyToStartContainers").get("status") == "True", 10, "a is attached")
    equal((again.ip, again.container_id(), again.restarts()), (a.ip, cid, 0), "address, container and restarts")
    until(lambda: re.search("[2-9] attachments checked, 1 attached again, 0 with problems", explain(node, "node")), 15,
          "both were checked")
    contains(node.log(), "attached the pod again")
    inside = Inside(node)
    try:
        inside.start(again, SERVER)
        equal(get(inside, node.pod("b"), a.ip, 80), b.ip, "pod to pod")
        check(get(inside, None, "192.0.2.10", 8080), "host to pod")
    finally:
        inside.end()
    node.finish(a, b)
    equal(node.stop(), 0, "exit code")


def test_lost_while_running(t):
    """a lost interface is detected at once and created again; a pod that removes it repeatedly has to wait; changes inside are left alone"""
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container()))
    node.put("b.yaml", pod("b", container()))
    node.put("c.yaml", pod("c", container(ports=ports((80, 8080, "TCP", None))), annotations={"kubernetes.io/egress-bandwidth": "10M"}))
    a, b, c = node.wait_running("a"), node.wait_running("b"), node.wait_running("c")

    def inside(p, *args):
        return run("nsenter", f"--net=/proc/{node.pid(p)}/ns/net", "ip", *args).stdout

    def whole(p):
        return f"inet {p.ip}/" in inside(p, "-o", "addr", "show")

    def lost():
        return node.log().count("pod lost its network; attaching it again")

    inside(a, "link", "del", "eth0")
    until(lambda: lost() == 1 and whole(a), 5, "a has its interface again")
    inside(b, "addr", "flush", "dev", "eth0")
    until(lambda: f"interface eth0 lost its address {b.ip}" in explain(node, "pod", "b"), 5, "b's change is told")
    inside(b, "link", "add", "other", "type", "bridge")
    inside(b, "link", "del", "other")
    inside(c, "link", "set", "eth0", "down")
    inside(c, "link", "set", "eth0", "name", "mine")
    away = subprocess.Popen(["unshare", "-n", "sleep", "100"])
    try:
        until(lambda: os.readlink(f"/proc/{away.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 5, "another namespace")
        inside(c, "link", "set", "mine", "netns", str(away.pid))
        until(lambda: "interface eth0 was renamed or moved away" in explain(node, "pod", "c"), 5, "c's change is told")
        inside(a, "link", "del", "eth0")
        until(lambda: node.log().count("pod lost a part of its network") >= 4, 5, "that is seen, too")
        equal(lost(), 1, "not at once again, and not for what was changed inside")
        contains(explain(node, "node"), "2 with problems")
        again = node.pod("a")
        equal((again.ip, again.restarts()), (a.ip, 0), "address and restarts")
        check(not whole(b), "b's address is where b has it")
        inside(b, "addr", "add", f"{b.ip}/16", "dev", "eth0")
        until(lambda: "lost its address" not in explain(node, "pod", "b"), 20, "b has put it right")
        node.finish(a, b, c)
        check(not [x for x in links() if x.startswith(("bwp", "veth"))], links)
    finally:
        away.kill()
        away.wait()
    equal(node.stop(), 0, "exit code")


def test_flushed_rules(t):
    """rules that were flushed are detected by CHECK after the next change of the lists, and created again"""
    node = t.node()
    run("ip", "addr", "add", "192.0.2.10/32", "dev", "lo")
    node.import_image()
    node.put("a.yaml", pod("a", container(ports=ports((80, 8080, "TCP", None)))))
    a = node.wait_running("a")
    cached = f"{node.state_dir}/cni/results/coracle-"
    until(lambda: any('"check":' in read(f, "") for f in glob.glob(f"{cached}*")), 30, "the first check saw how it should be")
    run("iptables", "-t", "nat", "-F")
    inside = Inside(node)
    try:
        inside.start(a, SERVER)
        equal(get(inside, None, "192.0.2.10", 8080), "", "host to pod without rules")
        put_list(t, "20-other.conflist", {"cniVersion": "1.0.0", "name": "other", "plugins": [{"type": "loopback"}]})
        until(lambda: "1 attached again" in explain(node, "node"), 15, "explain node tells what was healed")
        until(lambda: get(inside, None, "192.0.2.10", 8080), 10, "host to pod")
        again = node.pod("a")
        equal((again.ip, again.container_id()), (a.ip, a.container_id()), "address and container")
    finally:
        inside.end()
    node.finish(a)
    equal(node.stop(), 0, "exit code")


def test_forgotten_attachments(t):
    """rules, ifbs and firewall entries of pods unknown to the state folder are removed at the next start"""
    node = t.node()
    node.import_image()
    for n, name in enumerate(("a", "b")):
        node.put(f"{name}.yaml", pod(name, container(ports=ports((80, 8080 + n, "TCP", None), (53, 8080 + n, "UDP", None))),
                                     annotations={"kubernetes.io/egress-bandwidth": "10M"}, terminationGracePeriodSeconds=0))
    a, b = node.wait_running("a"), node.wait_running("b")
    node.kill()
    for folder in ("results", "networks"):  # of a, only the work of its plugins is left; b lives and has lost its entry too
        shutil.rmtree(f"{node.state_dir}/cni/{folder}")
    os.unlink(f"{node.state_dir}/pods/{a.uid}.json")
    for copy in glob.glob(f"{node.state_dir}/pods/{a.uid}.json.*"):
        os.unlink(copy)
    node.remove("a.yaml")
    node.start()
    until(lambda: "were found only by their leftovers" in explain(node, "node"), 15, "explain node tells what was found")
    again = node.wait_pod("b", lambda p: p.phase == "Running" and p.ip and p.condition("PodReadyToStartContainers").get("status") == "True",
                          20, "b is attached again")
    until(lambda: a.ip == again.ip or f"{a.ip}/32" not in firewall(), 10, "rules of a are gone")
    until(lambda: len(re.findall(r"(?m)^:CNI-DN-", run("iptables-save", "-t", "nat").stdout)) == 1, 10, "ports of b alone")
    until(lambda: len([x for x in links() if x.startswith("bwp")]) == 1, 10, "the ifb of b alone")
    node.finish(b)
    check(not re.search("CNI-DN-|CNI-[0-9a-f]{24}", firewall()), firewall)
    check(not [x for x in links() if x.startswith(("bwp", "veth"))], links)
    equal(node.stop(), 0, "exit code")


PLUGIN = """#!/bin/sh
test $CNI_COMMAND = VERSION && echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}' && exit
if [ ! -e %s ]; then
    test $CNI_COMMAND = ADD || exit 0
    exec python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))'
fi
echo '{"cniVersion":"1.0.0","code":%d,"msg":"%s","details":"%s"}'
exit 1
"""


def test_errors_of_plugins(t):
    """code, message and details of a plugin's error reach the pod's status, its events and explain, for ADD and for DEL"""
    folder = f"{t.scratch}/tmp/bin"
    shutil.copytree("/usr/lib/cni", folder)
    flag = f"{t.scratch}/tmp/fail"
    with open(f"{folder}/judge", "w", encoding="utf-8") as f:
        f.write(PLUGIN % (flag, 107, "no room", "rack 7 is full"))
    os.chmod(f"{folder}/judge", 0o755)
    conf = usual_list()
    conf["plugins"].append({"type": "judge"})
    put_list(t, "10-coracle.conflist", conf)
    open(flag, "w", encoding="utf-8").close()
    node = t.node("--cni-bin-dir", folder)
    node.import_image()
    node.put("a.yaml", pod("a", container()))
    words = 'plugin type="judge" failed (add): no room: rack 7 is full (CNI code 107)'
    a = node.wait_pod("a", lambda p: words in p.condition("PodReadyToStartContainers").get("message", ""), 10, "the condition says why")
    equal(a.condition("PodReadyToStartContainers")["reason"], "NetworkNotReady", "its reason")
    contains(explain(node, "pod", "a"), "CNI code 107")
    os.unlink(flag)
    a = node.wait_running("a", deadline=30)
    open(flag, "w", encoding="utf-8").close()
    node.remove("a.yaml")
    until(lambda: 'plugin type="judge" failed (del): no room: rack 7 is full (CNI code 107)' in explain(node, "pod", "a"), 20,
          "explain says why the DEL does not work")
    os.unlink(flag)
    node.wait_gone("a", deadline=40)
    node.wait_no_traces(a)
    equal(node.stop(), 0, "exit code")


def test_lists(t):
    """a list that is broken, or names a missing program or a version that no plugin supports, is reported and ignored"""
    put_list(t, "01-broken.conflist", '{"name": "x", "plugins": [')
    put_list(t, "02-missing.conflist", {"cniVersion": "1.0.0", "name": "m", "plugins": [{"type": "no-such-plugin"}]})
    put_list(t, "03-new.conflist", {"cniVersion": "1.1.0", "name": "n", "plugins": [{"type": "bridge"}]})
    node = t.node()
    node.import_image()
    node.put("a.yaml", pod("a", container()))
    a = node.wait_running("a")
    speaks = subprocess.run(["/usr/lib/cni/bridge"], input='{"cniVersion":"1.1.0"}', text=True, stdout=subprocess.PIPE, check=False,
                            env={"CNI_COMMAND": "VERSION", "CNI_CONTAINERID": "x", "CNI_NETNS": "x", "CNI_IFNAME": "x", "CNI_PATH": "x"})
    text = explain(node, "node")
    contains(text, "01-broken.conflist: ")
    contains(text, '02-missing.conflist: network "m": failed to find plugin "no-such-plugin"')
    if "1.1.0" not in json.loads(speaks.stdout)["supportedVersions"]:
        until(lambda: '03-new.conflist: network "n": plugin "bridge" does not speak cniVersion 1.1.0' in explain(node, "node"), 10,
              "the version is named")
        equal(os.listdir(f"{node.state_dir}/cni/networks"), ["coracle"], "networks that gave addresses")
    node.finish(a)
    equal(node.stop(), 0, "exit code")
