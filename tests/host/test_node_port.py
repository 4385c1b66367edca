# SPDX-License-Identifier: Apache-2.0
"""The node's HTTPS port (kubelet's 10250): coracle-kube before a real daemon, and clients as an apiserver is one."""
import contextlib
import http.client
import json
import os
import socket
import ssl
import time
import urllib.parse

from coracle import Failed, SLOW, check, container, contains, equal, pod, processes, read, until
from node_port import NodePort, Pki, free_port
from spdy_peer import Reset, SpdyPeer


def two_pods(t):
    node = t.node()
    node.import_image()
    node.put("web.yaml", pod("web", container(command=["sh", "-c", "echo one; echo two >&2; echo three; mkdir -p /tmp/www; echo page > /tmp/www/x; "
                                                                   "exec httpd -f -p 127.0.0.1:8080 -h /tmp/www"]),
                             terminationGracePeriodSeconds=0))
    node.put("done.yaml", pod("done", container(command=["true"]), restartPolicy="Never"))
    node.wait_running("web")
    node.wait_phase("done", "Succeeded")
    return node


@contextlib.contextmanager
def port_of(t, **server):
    node = two_pods(t)
    port = NodePort(node, Pki(f"{t.scratch}/pki"), **server)
    try:
        yield node, port
        port.stop()
    finally:
        if port.process.poll() is None:
            port.process.kill()
            port.process.wait()


def command(*words, **flags):
    pairs = [("command", w) for w in words] + [(k, "1") for k, v in flags.items() if v]
    return "?" + urllib.parse.urlencode(pairs)


def test_paths(t):
    """the paths of kubelet's port and their texts"""
    with port_of(t) as (node, port):
        equal(port.ask("/healthz")[::2], (200, "ok"), "healthz")
        equal(port.ask("/healthz/syncloop")[::2], (200, "ok"), "healthz/syncloop")
        equal(port.ask("/healthz/other")[0], 404, "healthz/other")
        status, headers, text = port.ask("/pods")
        equal((status, headers["Content-Type"]), (200, "application/json"), "pods")
        pods = json.loads(text)
        equal((pods["kind"], sorted(p["metadata"]["name"] for p in pods["items"])), ("PodList", ["done", "web"]), "pods")
        equal([p["metadata"]["name"] for p in json.loads(port.ask("/runningpods/")[2])["items"]], ["web"], "runningpods")
        equal(json.loads(port.ask("/stats/summary")[2])["node"]["nodeName"], "test-node", "stats")
        equal(sorted(json.loads(port.ask("/configz")[2])), ["kubeletconfig"], "configz")
        for path, name in (("/metrics", "coracle_status_requests_total"), ("/metrics/cadvisor", "container_cpu_usage_seconds_total"),
                           ("/metrics/resource", "node_cpu_usage_seconds_total")):
            contains(port.ask(path)[2], name, path)
        contains(port.ask("/statusz")[2], "Binary version: v", "statusz")
        equal(port.ask("/logs/")[::2], (405, "logs endpoint is disabled.\n"), "logs")
        equal(port.ask("/debug/pprof/heap")[::2], (405, "profiling endpoint is disabled.\n"), "debug")
        equal(port.ask("/checkpoint/default/web/main", "POST")[::2],
              (500, "checkpointing of default/web/main failed (containers are not checkpointed here)"), "checkpoint")
        equal(port.ask("/nothing")[::2], (404, "404 page not found\n"), "no path")
        equal(port.ask("/exec/default")[::2], (404, "404: Page Not Found"), "half a path")
        status, headers, text = port.ask("/pods", "POST")
        equal((status, headers["Allow"], text), (405, "GET", "Method Not Allowed"), "a method")
        equal(port.ask("/run/default/web/main?cmd=echo+a+b", "POST")[::2], (200, "a b\n"), "run")
        equal(port.ask("/run/default/web/main?cmd=false", "POST")[0], 500, "run that fails")
        node.stop()


def test_container_logs(t):
    """containerLogs has kubelet's options and errors, and follows"""
    with port_of(t) as (node, port):
        logs = "/containerLogs/default/web/main"
        until(lambda: port.ask(logs)[2].count("\n") == 3, 10, "the log")
        equal(sorted(port.ask(logs)[2].split()), ["one", "three", "two"], "all")
        equal(len(port.ask(f"{logs}?tailLines=1&follow=false")[2].split()), 1, "tailLines")
        equal(port.ask(f"{logs}?tail=all")[2].count("\n"), 3, "tail=all")
        equal(len(port.ask(f"{logs}?limitBytes=3")[2]), 3, "limitBytes")
        contains(port.ask(f"{logs}?timestamps=true")[2], "Z one", "timestamps")
        equal(port.ask(f"{logs}?stream=Stderr")[2], "two\n", "stream")
        equal(port.ask("/containerLogs/default/none/main")[::2], (404, 'pod "none" does not exist'), "no pod")
        equal(port.ask("/containerLogs/default/web/none")[::2], (404, 'container "none" not found in pod "web"'), "no container")
        equal(port.ask(f"{logs}?follow=maybe")[::2], (400, '{"message": "Unable to decode query."}'), "a bad flag")
        equal(port.ask(f"{logs}?sinceSeconds=0")[::2], (422, '{"message": "Invalid request."}'), "a bad number")
        equal(port.ask(f"{logs}?previous=true")[::2],
              (400, 'previous terminated container "main" in pod "web" not found'), "previous")
        s = port.connect()
        s.sendall(f"GET {logs}?follow=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        got = b""
        while got.count(b"one") + got.count(b"two") + got.count(b"three") < 3:
            got += s.recv(65536)
        contains(got.decode(), "Transfer-Encoding: chunked")
        node.remove("web.yaml")
        while not got.endswith(b"0\r\n\r\n"):
            more = s.recv(65536)
            check(more, "the stream ended without its last chunk")
            got += more
        s.close()
        node.stop()


def test_authentication(t):
    """client certificates name users; others, and none, are 401"""
    with port_of(t) as (node, port):
        equal(port.ask("/healthz", client="viewer")[0], 200, "a certificate")
        equal(port.ask("/healthz", client=None)[::2], (401, "Unauthorized"), "none")
        equal(port.ask("/healthz", client="foreign")[::2], (401, "Unauthorized"), "another authority's")
        equal(port.ask("/nothing", client=None)[0], 401, "also where there is nothing")
        with socket.create_connection(("127.0.0.1", port.port)) as s:
            s.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            check(b"HTTP" not in s.recv(1000), "no answer without TLS")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with socket.create_connection(("127.0.0.1", port.port)) as s, old.wrap_socket(s) as c:
            equal(c.version(), "TLSv1.2", "the lowest version")
        port.tell({"type": "serving", "certificate": "", "clientCA": port.pki.pem("other.crt")})
        until(lambda: any("another certificate" in x.get("message", "") for x in port.lines), 10,
              lambda: f"the new certificate: {port.lines} {read(port.log_path, '')}")
        with socket.create_connection(("127.0.0.1", port.port)) as s, old.wrap_socket(s) as c:
            own = ssl.DER_cert_to_PEM_cert(c.getpeercert(True))
            contains(c.getpeercert(True).decode("latin1"), "test-node@", "a certificate of its own")
        until(lambda: port.certificates, 10, "the pair for the folder of certificates")
        told = port.certificates[0]
        equal((told["usage"], told["certificate"]), ("self-signed", own), "what is kept")
        contains(told["key"], "PRIVATE KEY", "its key")
        port.tell({"type": "serving", "certificate": told["certificate"], "key": told["key"], "clientCA": port.pki.pem("ca.crt")})
        until(lambda: _status(port, "admin") == 200, 10, "the CA of before")
        port.tell({"type": "serving", "clientCA": port.pki.pem("ca.crt")})
        until(lambda: port.ask_peer() == own, 10, "the same certificate again")
        equal(len(port.certificates), 1, "certificates that were made")
        node.stop()


def _status(port, client):
    return port.ask("/healthz", client=client, trusting=True)[0]


def test_curves(t):
    """tlsCurvePreferences: key exchanges of the port; those that OpenSSL lacks are named and left out"""
    with port_of(t, curves=[4588, 24]) as (node, port):
        for curve, works in (("secp384r1", True), ("prime256v1", False)):
            context = port.tls()
            context.set_ecdh_curve(curve)
            with contextlib.closing(socket.create_connection(("127.0.0.1", port.port), timeout=20)) as raw:
                try:
                    context.wrap_socket(raw, server_hostname="127.0.0.1").close()
                    equal(works, True, curve)
                except ssl.SSLError:
                    equal(works, False, curve)
        node.stop()


def test_idle_streams(t):
    """streamingConnectionIdleTimeout ends streams that pass nothing, and no others"""
    with port_of(t, idleMs=4000) as (node, port):
        begun = time.monotonic()
        silent = port.websocket(exec_path("cat", input=1, output=1), "v5.channel.k8s.io")
        talks = port.websocket(exec_path("sh", "-c", "for i in 1 2 3 4 5 6; do sleep 1; echo $i; done", output=1), "v5.channel.k8s.io")
        check(not any(silent.all().values()), "the silent one says something")
        check(time.monotonic() - begun >= 4, "it ended too early")
        equal(talks.all()[1], b"1\n2\n3\n4\n5\n6\n", "the other one")
        until(lambda: "cat" not in [p.split("\0")[0] for p in _commands(node)], 10, "the process of the silent one ended")
        node.stop()


def test_attach(t):
    """attach over SPDY and WebSocket: input, output, and the end of the container"""
    with port_of(t) as (node, port):
        node.put("in.yaml", pod("in", container(command=["sh", "-c", "while read x; do echo got $x; done"], stdin=True),
                                terminationGracePeriodSeconds=0))
        node.wait_running("in")
        path = "/attach/default/in/main?input=1&output=1&error=1"
        peer = port.spdy(path)
        s = streams(peer, stdin=True)
        peer.write(s["stdin"], b"a\n")
        peer.read_until(s["stdout"], b"got a\n")
        w = port.websocket(path, "v5.channel.k8s.io, v4.channel.k8s.io")
        w.send(b"\x00b\n")
        got = b""
        while b"got b\n" not in got:
            message = w.message()
            check(message, "the stream ended")
            got += message[1:] if message[0] == 1 else b""
        peer.read_until(s["stdout"], b"got b\n")
        node.remove("in.yaml")
        w.all()
        peer.read_all(s["stdout"])
        equal(port.ask("/attach/default/none/main?output=1")[::2], (404, "pod does not exist"), "no pod")
        equal(port.ask("/attach/default/web/main")[::2], (400, "you must specify at least 1 of stdin, stdout, stderr"), "no stream")
        node.stop()


def _resident(process):
    return int(read(f"/proc/{process.pid}/statm").split()[1]) * 4096


def _written(node):
    """Bytes that the floods of the pods have written, each."""
    return {p: read(f"/proc/{p}/io", "").partition("wchar: ")[2].partition("\n")[0] for p in processes()
            if node.cgroup_root + "/" in read(f"/proc/{p}/cgroup", "") and read(f"/proc/{p}/cmdline", "").startswith("cat\0/dev/zero")}


def test_slow_clients(t):
    """clients that never read hold little memory and block no other client; excess connections are closed at once"""
    with port_of(t) as (node, port):
        port.ask("/healthz")
        before, flood = _resident(port.process), exec_path("cat", "/dev/zero", output=1)
        slow = [port.websocket(flood, "v5.channel.k8s.io") for _ in range(8)]
        for _ in range(8):
            peer = port.spdy(flood)
            streams(peer, stderr=False)
            slow.append(peer)
        last = [{}]

        def still():
            now = _written(node)
            same, last[0] = len(now) == 16 and now == last[0], now
            time.sleep(0.3)
            return same
        until(still, 30, lambda: f"the floods are held: {last[0]}")
        grown = _resident(port.process) - before
        if SLOW == 1:  # not for the sanitized process: freed memory stays in its quarantine
            check(grown < 16 * (2 << 20), f"{grown} bytes for 16 clients that do not read")
        equal(port.ask("/healthz")[0], 200, "another client")
        many = [socket.create_connection(("127.0.0.1", port.port), timeout=20) for _ in range(280)]
        closed = [s for s in many[-24:] if s.recv(1) == b""]
        equal(len(closed), 24, "connections beyond the limit")
        for s in many:
            s.close()
        until(lambda: _status(port, "admin") == 200, 20, "a place is free again")
        for s in slow:
            s.socket.close()
        until(lambda: not _written(node), 20, "the floods ended")
        node.stop()


def exec_path(*words, **flags):
    return "/exec/default/web/main" + command(*words, **flags)


def test_exec_over_websocket(t):
    """exec with v5 and v4 channels; the end is a Status"""
    with port_of(t) as (node, port):
        w = port.websocket(exec_path("sh", "-c", "cat; echo bad >&2; exit 3", input=1, output=1, error=1), "v5.channel.k8s.io, v4.channel.k8s.io")
        equal(w.protocol, "v5.channel.k8s.io", "protocol")
        w.send(b"\x00hello\n")
        w.send(b"\xff\x00")
        got = w.all()
        equal((got[1], got[2]), (b"hello\n", b"bad\n"), "output")
        status = json.loads(got[3])
        equal((status["reason"], status["details"]["causes"][0]["message"]), ("NonZeroExitCode", "3"), "status")
        equal(port.ask(exec_path("true"))[::2], (400, "you must specify at least 1 of stdin, stdout, stderr"), "no stream")
        equal(port.ask(exec_path("true", output=1))[::2], (400, "Upgrade request required\n"), "no upgrade")
        equal(port.ask("/exec/default/none/main" + command("true", output=1))[::2], (404, "pod does not exist"), "no pod")
        equal(port.ask("/exec/default/web/none" + command("true", output=1))[::2], (500, 'container not found ("none")'), "no container")
        equal(port.ask("/exec/default/web/11111111-2222/main" + command("true", output=1))[::2], (404, "pod not found"), "another uid")
        node.stop()


def streams(peer, stdin=False, stdout=True, stderr=True, resize=False):
    made = {"error": peer.open(streamType="error")}
    for name, wanted in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr), ("resize", resize)):
        if wanted:
            made[name] = peer.open(streamType=name)
    return made


def test_exec_over_spdy(t):
    """exec as apiservers ask for it: input, output, exit codes of each protocol, half-close, much output, a terminal"""
    with port_of(t) as (node, port):
        peer = port.spdy(exec_path("sh", "-c", "cat; echo bad >&2; exit 3", input=1, output=1, error=1),
                         ("v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io"))
        equal(peer.protocol, "v4.channel.k8s.io", "protocol")
        s = streams(peer, stdin=True)
        peer.write(s["stdin"], b"hello\n")
        peer.read_until(s["stdout"], b"hello\n")
        peer.write(s["stdin"], b"", fin=True)
        out, err, end = peer.read_all(s["stdout"], s["stderr"], s["error"])
        equal((out, err), (b"hello\n", b"bad\n"), "output")
        equal(json.loads(end)["details"]["causes"], [{"reason": "ExitCode", "message": "3"}], "status")

        uid = node.pod("web").uid
        peer = port.spdy(f"/exec/default/web/{uid}/main" + command("true", output=1), method="GET")
        s = streams(peer, stderr=False)
        equal(json.loads(peer.read_all(s["error"])), {"metadata": {}, "status": "Success"}, "success")

        peer = port.spdy(exec_path("sh", "-c", "exit 4", output=1), ("v2.channel.k8s.io",))
        s = streams(peer, stderr=False)
        equal(peer.read_all(s["error"]), b"command terminated with non-zero exit code: exit status 4", "before v4")

        big = 3 << 20
        peer = port.spdy(exec_path("sh", "-c", f"head -c {big} /dev/zero", output=1))
        s = streams(peer, stderr=False)
        equal(len(peer.read_all(s["stdout"])), big, "more than a window")

        peer = port.spdy(exec_path("wc", "-c", input=1, output=1))
        s = streams(peer, stdin=True, stderr=False)
        peer.write(s["stdin"], b"x" * big, fin=True)
        equal(peer.read_all(s["stdout"]), f"{big}\n".encode(), "input")
        check(peer.updates, "input is acknowledged")

        peer = port.spdy(exec_path("sh", "-c", "read x; stty size; echo to >&2", input=1, output=1, error=1, tty=1))
        s = streams(peer, stdin=True, stderr=False, resize=True)
        peer.write(s["resize"], b'{"Width":101,"Hei')
        peer.write(s["resize"], b'ght":33}')
        time.sleep(0.1)
        peer.write(s["stdin"], b"go\n")
        contains(peer.read_all(s["stdout"]).decode(), "33 101", "the size of the terminal")
        node.stop()


def test_spdy_rules(t):
    """refusals, pings, windows, streams that never come, and clients that go"""
    with port_of(t) as (node, port):
        status, headers, s, text = port.upgrade(exec_path("true", output=1), [("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "v9")])
        while len(text) < int(headers["content-length"]):
            text += s.recv(65536)
        equal((status, headers["x-accepted-stream-protocol-versions"]), (403, "channel.k8s.io"), "no protocol")
        equal(text.decode(), "unable to upgrade: unable to negotiate protocol: client supports [v9], server accepts [v4.channel.k8s.io "
                             "v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]\n", "its text")
        equal(port.upgrade(exec_path("true", output=1), [("Upgrade", "h2c")])[0], 400, "another protocol")
        peer = port.spdy(exec_path("cat", input=1, output=1), ())
        equal(peer.protocol, None, "no protocol was named")
        s = streams(peer, stdin=True, stderr=False)
        other = peer.open(streamType="sound")
        check(other in peer.reset, "an unknown stream is refused")
        peer.ping(7)
        while not peer.pongs:
            peer.step()
        equal(peer.pongs, [7], "ping")
        peer.socket.close()
        until(lambda: "cat" not in [p.split("\0")[0] for p in _commands(node)], 10, "the process ended")

        peer = port.spdy(exec_path("sh", "-c", "head -c 300000 /dev/zero", output=1))
        error = peer.open(streamType="error")
        stdout = peer.start(streamType="stdout")
        peer.window(stdout, 1)  # from now on windows hold: 65537 bytes
        while error not in peer.done and len(peer.data[stdout]) < 65537:
            peer.step()
        peer.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                peer.step()
        had = len(peer.data[stdout])
        peer.socket.settimeout(20)
        check(had <= 65537 or had == 300000, f"{had} bytes in a window of 65537")
        peer.window(stdout, 1 << 20)
        equal(len(peer.read_all(stdout)), 300000, "all of it")

        s = port.connect()
        s.sendall((f"POST {exec_path('true', output=1)} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
                   "Content-Length: 0\r\n\r\n").encode())
        got = s.recv(65536)
        s.sendall(b"\x80\x02\x00\x01\x00\x00\x00\x00 no SPDY/3")
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
        contains(got.decode("latin1"), "\x80\x03\x00\x07", "GOAWAY")
        node.stop()


def _commands(node):
    return [read(f"/proc/{p}/cmdline", "") for p in processes() if node.cgroup_root + "/" in read(f"/proc/{p}/cgroup", "")]


def forward(peer, number, port):
    error = peer.open(streamType="error", port=port, requestID=number)
    peer.write(error, b"", fin=True)
    return error, peer.open(streamType="data", port=port, requestID=number)


def test_port_forward(t):
    """port-forward over SPDY and in a WebSocket: several connections, errors by their own stream"""
    with port_of(t) as (node, port):
        def tunnel():
            w = port.websocket("/portForward/default/web", "SPDY/3.1+portforward.k8s.io")
            equal(w.protocol, "SPDY/3.1+portforward.k8s.io", "protocol")
            return SpdyPeer(w.send, w.message)
        for peer in (port.spdy(f"/portForward/default/web/{node.pod('web').uid}", ("portforward.k8s.io",)), tunnel()):
            first, second = forward(peer, 0, 8080), forward(peer, 1, 8080)
            for _, data in (second, first):
                peer.write(data, b"GET /x HTTP/1.0\r\n\r\n")
            for error, data in (first, second):
                contains(peer.read_all(data).decode(), "page", "the answer")
                peer.write(data, b"", fin=True)
                equal(peer.read_all(error), b"", "no error")
            error, data = forward(peer, 2, 9)
            contains(peer.read_all(error).decode(), "error forwarding port 9 to pod web, uid ", "a closed port")
            peer.read_all(data)
            bad = peer.open(streamType="data", port=0, requestID=3)
            check(bad in peer.reset, "no port")
            with contextlib.suppress(Reset):
                peer.read_all(bad)
        equal(port.ask("/portForward/default/none")[::2], (404, "pod does not exist"), "no pod")
        node.stop()


def test_port_forward_by_channels(t):
    """port-forward over WebSocket with ports in the query: a pair of channels each, that begin with the port"""
    with port_of(t) as (node, port):
        w = port.websocket("/portForward/default/web?port=8080&port=9,8080", "v4.channel.k8s.io")
        equal(w.protocol, "v4.channel.k8s.io", "protocol")
        got = {n: b"" for n in range(6)}
        asked = False
        while any(len(v) < 2 for v in got.values()) or b"page" not in got[4] or not got[3][2:]:
            if all(len(v) >= 2 for v in got.values()) and not asked:
                asked = True
                w.send(b"\x04GET /x HTTP/1.0\r\n\r\n")
                w.send(b"\x03nobody reads this")
            data = w.message()
            check(data, f"the WebSocket ended early: {got}")
            got[data[0]] += data[1:]
        equal([v[:2] for v in got.values()], [b"\x90\x1f"] * 2 + [b"\x09\x00"] * 2 + [b"\x90\x1f"] * 2, "the ports")
        contains(got[3].decode("latin-1"), "error forwarding port 9 to pod web, uid ", "a closed port")
        w.send(b"\x00GET /x HTTP/1.0\r\n\r\n")
        while data := w.message():
            got[data[0]] += data[1:]
        contains(got[0].decode("latin-1"), "page", "the answer")
        equal((got[1][2:], got[5][2:], w.closed), (b"", b"", 1000), "no errors, and the end")
        for query in ("", "?port=", "?port=0", "?port=70000", "?port=" + ",".join("1" * 33)):
            try:
                port.websocket(f"/portForward/default/web{query}", "v4.channel.k8s.io")
                raise AssertionError(f"{query} was taken")
            except Failed as e:
                contains(str(e), "400", query)
        node.stop()


def test_port_of_a_daemon(t):
    """a daemon with a kubeconfig opens the port, also while no apiserver answers; --read-only-port opens another one"""
    pki, scratch = Pki(f"{t.scratch}/pki"), t.scratch
    open_port, read_only = free_port(), free_port()
    with open(f"{scratch}/kubeconfig", "w", encoding="ascii") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [
            {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "x"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}, f)
    node = t.node("--kubeconfig", f"{scratch}/kubeconfig", "--client-ca-file", f"{pki.folder}/ca.crt", "--authorization-mode",
                  "AlwaysAllow", "--address", "127.0.0.1", "--port", str(open_port), "--read-only-port", str(read_only),
                  "--cert-dir", f"{scratch}/certs")
    node.import_image()
    port = NodePort.of_daemon(node, pki, open_port)

    def answer():
        with contextlib.suppress(OSError):
            return port.ask("/healthz", trusting=True)[::2]
        return None
    until(lambda: answer() == (200, "ok"), 20, lambda: f"the port: {node.log()[-2000:]}")
    until(lambda: os.path.exists(f"{scratch}/certs/kubelet.crt"), 10, "the pair that it signed")
    equal(os.stat(f"{scratch}/certs/kubelet.key").st_mode & 0o777, 0o600, "who reads the key")
    kept = port.pki.pem("../certs/kubelet.crt")
    equal(port.ask_peer(), kept, "the certificate that is kept")
    node.kill()
    node.start()
    until(lambda: answer() == (200, "ok"), 20, lambda: f"the port: {node.log()[-2000:]}")
    equal((port.ask_peer(), port.pki.pem("../certs/kubelet.crt")), (kept, kept), "the same one after a restart")
    for suffix in ("key", "crt"):
        with open(f"{scratch}/certs/kubelet.{suffix}.new", "w", encoding="ascii") as f:
            f.write(pki.pem(f"server.{suffix}"))
        os.rename(f"{scratch}/certs/kubelet.{suffix}.new", f"{scratch}/certs/kubelet.{suffix}")
    until(lambda: port.ask_peer() == pki.pem("server.crt"), 20, "another pair in its place")
    node.put("web.yaml", pod("web", container(command=["sh", "-c", "echo hello; exec sleep 1000"]), terminationGracePeriodSeconds=0))
    name = "web-test-node"
    until(lambda: "hello" in port.ask(f"/containerLogs/default/{name}/main")[2], 20, "the log")
    peer = port.spdy(f"/exec/default/{name}/main" + command("echo", "hi", output=1))
    s = streams(peer, stderr=False)
    equal(peer.read_all(s["stdout"]), b"hi\n", "exec")
    equal(port.ask("/healthz", client=None)[0], 401, "nobody")
    plain = http.client.HTTPConnection("127.0.0.1", read_only, timeout=20)
    for path, status in (("/healthz", 200), ("/pods", 200), ("/metrics", 200), (f"/containerLogs/default/{name}/main", 404),
                         (f"/exec/default/{name}/main?command=id&output=1", 404), ("/configz", 404)):
        plain.request("GET", path)
        got = plain.getresponse()
        got.read()
        equal(got.status, status, f"{path} of the read-only port")
    node.stop()
