# SPDX-License-Identifier: Apache-2.0
"""Probes and lifecycle hooks with real containers and real servers."""
import os
import re
import time

import servers
from coracle import check, container, contains, equal, pod, processes, read, run, shell, until
from servers import ADDRESS, Server, answers, response

STAY = "trap 'exit 0' TERM; while true; do sleep 3600 & wait $!; done"


def start(t):
    run("ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    node = t.node("--node-ip", ADDRESS)
    node.import_image()
    return node


def probe(**handler):
    return {"periodSeconds": 1, **handler}


def messages(node, name, reason):
    return [e["message"] for e in node.events(name) if e["reason"] == reason]


def wait_event(node, name, reason, text="", deadline=15):
    return until(lambda: next((m for m in messages(node, name, reason) if text in m), None), deadline,
                 lambda: f"event {reason} {text!r} of {name}: {[(e['reason'], e['message']) for e in node.events(name)]}")


def marked(mark):
    """Processes with this word in their command line."""
    return [p for p in processes() if mark in read(f"/proc/{p}/cmdline", "")]


def test_kinds(t):
    """readiness by HTTP, HTTPS, TCP, gRPC and exec follows the server's state"""
    node = start(t)
    http, tcp = Server(answers(*[response(503)] * 13, response(200))), Server(lambda *a: None)
    https = Server(answers(response(200)), tls=servers.certificate(t.scratch))
    grpc = Server(servers.grpc_health({"web": 1}, code="5", message="unknown service"))
    probes = {
        "http": probe(httpGet={"host": ADDRESS, "port": http.port, "path": "/ok?x", "httpHeaders": [{"name": "x-a", "value": "b"}]}),
        "https": probe(httpGet={"host": ADDRESS, "port": https.port, "scheme": "HTTPS"}, timeoutSeconds=5),
        "tcp": probe(tcpSocket={"host": ADDRESS, "port": tcp.port}),
        "name": probe(tcpSocket={"host": "localhost.localdomain.invalid", "port": 1}, timeoutSeconds=5),
        "grpc": probe(grpc={"port": grpc.port, "service": "web"}),
        "grpc-other": probe(grpc={"port": grpc.port, "service": "other"}),
        "exec": probe(exec={"command": shell("test \"${A}$(A)\" = bb && touch /tmp/seen")}),
    }
    containers = [container(name, readinessProbe=p, env=[{"name": "A", "value": "b"}]) for name, p in probes.items()]
    node.put("kinds.yaml", pod("kinds", *containers, hostNetwork=True))
    bad = {"name", "grpc-other"}
    node.wait_pod("kinds", lambda p: {c["name"] for c in p.status.get("containerStatuses", []) if c["ready"]} == set(probes) - bad,
                  what="all but two ready")
    request = http.requests[0].split("\r\n")
    equal(request[0], "GET /ok?x HTTP/1.1", "request line")
    equal(sorted(request[1:-2]), sorted([f"Host: {ADDRESS}:{http.port}", "User-Agent: kube-probe/1.36", "Accept: */*", "X-A: b",
                                         "Connection: close"]), "headers")
    wait_event(node, "kinds", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
    wait_event(node, "kinds", "Unhealthy",
               "Readiness probe failed: error: health rpc probe failed: rpc error: code = NotFound desc = unknown service")
    wait_event(node, "kinds", "Unhealthy", "Readiness probe failed: dial tcp: lookup localhost.localdomain.invalid")
    explained = node.cli("explain", "kinds").stdout
    contains(explained, "Readiness probe of grpc-other", "explain")
    contains(explained, "rpc error: code = NotFound", "explain")
    node.remove("kinds.yaml")
    node.wait_gone("kinds")


def test_hostile_servers(t):
    """a dripping head, an endless head, an endless body and a round of redirects end in time, and delay nobody"""
    node = start(t)
    cases = {
        "drip": (servers.drips, "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
        "head": (servers.endless_head, "server response headers exceeded"),
        "round": (answers(response(302, Location="/again")), "Get \"/again\": stopped after 10 redirects"),
    }
    peers = {name: Server(serve) for name, (serve, _) in cases.items()}
    body, away = Server(servers.endless_body), Server(answers(response(302, Location="http://127.0.0.1:1/")))
    good = Server(answers(response(200)))
    containers = [container(name, readinessProbe=probe(httpGet={"host": ADDRESS, "port": s.port})) for name, s in
                  {**peers, "body": body, "away": away, "good": good}.items()]
    node.put("hostile.yaml", pod("hostile", *containers))
    for name, (_, text) in cases.items():
        wait_event(node, "hostile", "Unhealthy", text)
    wait_event(node, "hostile", "ProbeWarning", "Readiness probe warning: Probe terminated redirects, Response body: ")
    node.wait_pod("hostile", lambda p: {c["name"] for c in p.status["containerStatuses"] if c["ready"]} == {"body", "away", "good"},
                  what="the body, away and good ready")
    before, at = good.connections, time.monotonic()
    until(lambda: good.connections >= before + 3, 10, "the good one is probed on")
    check(time.monotonic() - at < 8, "the good one is probed at its pace")
    check(peers["round"].connections >= 10, "ten requests in a round")


def test_restart_of_the_agent(t):
    """a pod that was ready stays ready over kill -9, until its probe says otherwise; a started one is not started again"""
    node = start(t)
    server = Server(answers(response(200)))
    node.put("kept.yaml", pod("kept", container(
        startupProbe=probe(exec={"command": shell("test ! -e /tmp/up && touch /tmp/up")}),
        readinessProbe=probe(httpGet={"host": ADDRESS, "port": server.port}),
        livenessProbe=probe(exec={"command": ["/bin/true"]}))))
    first = node.wait_pod("kept", lambda p: p.ready, what="ready")
    since = [c["lastTransitionTime"] for c in first.status["conditions"] if c["type"] == "Ready"]
    for _ in range(2):
        node.kill()
        time.sleep(1.1)  # another second, so that a flap would show
        node.start()
        probed, unready = server.connections, []

        def probed_again():
            if not node.pod("kept").ready:
                unready.append(node.pod("kept"))
            return server.connections >= probed + 2
        until(probed_again, 15, "probed again")
        equal(unready, [], "times it was shown unready")
        now = node.pod("kept")
        equal([c["lastTransitionTime"] for c in now.status["conditions"] if c["type"] == "Ready"], since, "time of Ready")
        equal((now.restarts(), now.container()["started"]), (0, True), "restarts, started")
    server.serve = answers(response(500))
    node.wait_pod("kept", lambda p: not p.ready, what="unready by its probe")


def test_liveness_restarts(t):
    """liveness failures restart the container with the probe's own grace, whatever its exit code says"""
    node = start(t)
    node.put("sick.yaml", pod("sick", container(
        command=shell("trap '' TERM; touch /tmp/up; while true; do sleep 1; done"),
        livenessProbe={**probe(exec={"command": shell("exit 1")}), "failureThreshold": 1, "terminationGracePeriodSeconds": 2}),
        restartPolicy="OnFailure", terminationGracePeriodSeconds=60))
    node.wait_pod("sick", lambda p: p.restarts() >= 1, what="restarted", deadline=25)
    contains(messages(node, "sick", "Killing")[0], "Container main failed liveness probe, will be restarted", "event")
    node.put("well.yaml", pod("well", container(livenessProbe={**probe(exec={"command": shell("exit 1")}), "failureThreshold": 1}),
                              restartPolicy="OnFailure"))
    # Its exit code is 0: OnFailure alone would let it be.
    node.wait_pod("well", lambda p: p.restarts() >= 1, what="restarted after exit code 0")
    node.remove("sick.yaml", "well.yaml")
    node.wait_gone("sick", "well", deadline=30)


def test_startup_gates(t):
    """liveness and readiness wait for the startup probe; a sidecar's startup probe holds back what follows it"""
    node = start(t)
    server = Server(answers(response(200)))
    node.put("slow.yaml", pod("slow", container(
        "main", command=shell(f"touch /tmp/began; {STAY}"),
        startupProbe={**probe(exec={"command": shell("n=$(cat /tmp/n 2>/dev/null || echo 0); echo $((n+1)) > /tmp/n; test $n -ge 3")}),
                      "failureThreshold": 30},
        livenessProbe=probe(httpGet={"host": ADDRESS, "port": server.port})),
        initContainers=[container("side", restartPolicy="Always", startupProbe={
            **probe(exec={"command": ["/bin/busybox", "test", "-e", "/tmp/go"]}), "failureThreshold": 60})]))
    node.wait_pod("slow", lambda p: any("running" in c["state"] for c in p.status.get("initContainerStatuses", [])), what="sidecar runs")
    wait_event(node, "slow", "Unhealthy", "Startup probe failed: ")
    now = node.pod("slow")
    equal((now.phase, now.status["initContainerStatuses"][0]["started"]), ("Pending", False), "before the sidecar has started")
    check("waiting" in now.status["containerStatuses"][0]["state"], "main waits for the sidecar")
    cid = now.status["initContainerStatuses"][0]["containerID"].rpartition("//")[2]
    pid = next(read(f + "/cgroup.procs", "").split()[0] for f in node.cgroups_of(cid) if read(f + "/cgroup.procs", "").strip())
    run("nsenter", "-t", pid, "-a", "/bin/busybox", "touch", "/tmp/go")
    timeline = []
    node.wait_pod("slow", lambda p: p.ready, what="ready", timeline=timeline)
    unstarted = [p for _, p in timeline if p.status.get("containerStatuses") and "running" in p.state() and not p.container()["started"]]
    check(unstarted, "shown running but not started")
    until(lambda: server.connections > 0, 5, "liveness begins")


def test_hung_exec(t):
    """a hung exec probe and one that floods delay no other probe; the hung process is ended at its deadline"""
    node = start(t)
    server = Server(answers(response(200)))
    mark = f"{7000 + os.getpid() % 1000}.25"
    containers = [container(f"hung{i}", readinessProbe={**probe(exec={"command": ["/bin/sleep", mark]}), "timeoutSeconds": 2})
                  for i in range(6)]
    containers += [container("flood", readinessProbe=probe(exec={"command": ["/bin/busybox", "yes", "much of this"]})),
                   container("good", readinessProbe=probe(httpGet={"host": ADDRESS, "port": server.port})),
                   container("quick", readinessProbe=probe(exec={"command": ["/bin/true"]}))]
    node.put("hung.yaml", pod("hung", *containers))
    node.wait_pod("hung", lambda p: {c["name"] for c in p.status.get("containerStatuses", []) if c["ready"]} == {"good", "quick"},
                  what="good and quick ready")
    wait_event(node, "hung", "Unhealthy", f"Readiness probe failed: command timed out: \"/bin/sleep {mark}\" timed out after 2s")
    wait_event(node, "hung", "Unhealthy", "timed out after 1s")
    before = server.connections
    until(lambda: server.connections >= before + 3, 8, "the good one is probed at its pace")
    check(len(marked(mark)) <= 6 * 3, "hung probes do not pile up")
    node.remove("hung.yaml")
    node.wait_gone("hung")
    until(lambda: not marked(mark), 5, "no process of a probe is left")


def test_pre_stop(t):
    """preStop runs before the signal and on the pod's grace; after kill -9 of the agent it runs again"""
    node = start(t)
    folder = f"{t.scratch}/seen"
    os.mkdir(folder)
    hook = shell("echo hook >> /seen/log; sleep 4")
    node.put("stop.yaml", pod("stop", container(
        command=shell("trap 'echo term >> /seen/log; exit 0' TERM; while true; do sleep 1 & wait $!; done"),
        lifecycle={"preStop": {"exec": {"command": hook}}}, volumeMounts=[{"name": "seen", "mountPath": "/seen"}]),
        volumes=[{"name": "seen", "hostPath": {"path": folder}}], terminationGracePeriodSeconds=30))
    node.wait_running("stop")
    node.remove("stop.yaml")
    until(lambda: read(f"{folder}/log", "") == "hook\n", 5, "the hook runs")
    contains(node.cli("explain", "stop").stdout, "preStop hook is running", "explain")
    node.kill()
    node.start()
    node.wait_gone("stop")
    equal(read(f"{folder}/log"), "hook\nhook\nterm\n", "what the container saw")
    equal(messages(node, "stop", "FailedPreStopHook"), [], "no failure")


def test_pre_stop_sidecars(t):
    """a sidecar's preStop runs at once, its signal comes after the regular containers"""
    node = start(t)
    folder = f"{t.scratch}/seen"
    os.mkdir(folder)
    volume = {"volumeMounts": [{"name": "seen", "mountPath": "/seen"}]}
    node.put("order.yaml", pod(
        "order", container(command=shell("trap 'sleep 2; echo main >> /seen/log; exit 0' TERM; while true; do sleep 1 & wait $!; done"), **volume),
        initContainers=[container("side", restartPolicy="Always", lifecycle={"preStop": {"exec": {"command": shell("echo hook >> /seen/log")}}},
                                  command=shell("trap 'echo side >> /seen/log; exit 0' TERM; while true; do sleep 1 & wait $!; done"), **volume)],
        volumes=[{"name": "seen", "hostPath": {"path": folder}}], terminationGracePeriodSeconds=20))
    node.wait_running("order")
    node.remove("order.yaml")
    node.wait_gone("order")
    equal(read(f"{folder}/log"), "hook\nmain\nside\n", "the order")


def test_post_start(t):
    """a postStart hook delays the containers after its own; a failing hook has its container killed and restarted"""
    node = start(t)
    server = Server(answers(response(404)))
    node.put("chain.yaml", pod(
        "chain",
        container("first", lifecycle={"postStart": {"exec": {"command": shell("until test -e /tmp/go; do sleep 0.1; done")}}},
                  readinessProbe=probe(exec={"command": ["/bin/true"]})),
        container("second", lifecycle={"postStart": {"httpGet": {"host": ADDRESS, "port": server.port}}}), hostPID=False))
    until(lambda: any(e["reason"] == "Started" for e in node.events("chain")), 10, "the first one runs")
    until(lambda: marked("until test -e /tmp/go"), 10, "the hook runs")
    node.put("later.yaml", pod("later"))
    node.wait_running("later")  # a whole start: the second container's would be over
    now = node.pod("chain")
    equal([("waiting" in c["state"], c["ready"], c["started"]) for c in now.status["containerStatuses"]], [(True, False, False)] * 2,
          "neither is shown as running")
    equal([e for e in node.events("chain") if e["involvedObject"].get("fieldPath") == "spec.containers{second}"], [],
          "nothing of the second yet")
    contains(node.cli("explain", "chain").stdout, "postStart hook is running", "explain")
    node.kill()  # cut off: it runs again
    node.start()
    until(lambda: marked("until test -e /tmp/go"), 10, "the hook runs again")
    pid = marked("until test -e /tmp/go")[0]
    run("nsenter", "-t", pid, "-a", "/bin/busybox", "touch", "/tmp/go")
    node.wait_pod("chain", lambda p: p.ready, what="both ready")
    equal(server.requests[0].split("\r\n")[0], "GET / HTTP/1.1", "request of the hook")
    contains(server.requests[0], "User-Agent: kube-lifecycle/1.36", "request of the hook")

    node.put("bad.yaml", pod("bad", container(lifecycle={"postStart": {"tcpSocket": {"port": 1}}})))
    wait_event(node, "bad", "FailedPostStartHook", "PostStartHook failed")
    wait_event(node, "bad", "Killing", "FailedPostStartHook")
    node.wait_pod("bad", lambda p: p.restarts() >= 1 or p.state()[0] == "CrashLoopBackOff", what="tried again")
    node.remove("bad.yaml", "chain.yaml", "later.yaml")
    node.wait_gone("bad", "chain", "later")


def test_long_output(t):
    """10 KiB of what an exec probe prints are shown, as kubelet reads them; the rest is cut"""
    node = start(t)
    says = "i=0; while test $i -lt 400; do echo line-$i-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i+1)); done; exit 3"
    whole = "".join(f"line-{i}-{'x' * 40}\n" for i in range(400))
    check(len(whole) > 15 * 1024, "more than is read")
    node.put("probe.yaml", pod("probe", container(readinessProbe=probe(exec={"command": shell(says)}))))
    event = until(lambda: next((e for e in node.events("probe") if e["reason"] == "Unhealthy"), None), 20, "the probe fails")
    equal(event["message"], "Readiness probe failed: " + whole[:10 * 1024], "the event")
    contains(node.cli("describe", "pod", "probe").stdout, "line-200-", "describe")
    node.stop()


def test_failed_hooks_are_described(t):
    """describe names the container of each event, and says with which exit code and output a hook failed"""
    node = start(t)
    good = container("good")
    node.put("a.yaml", pod("a", good, container("bad", lifecycle={"postStart": {"exec": {
        "command": shell("echo no queue; exit 9")}}})))
    node.put("b.yaml", pod("b", good, container("bad", lifecycle={"preStop": {"exec": {"command": shell("echo no drain; exit 6")}}}),
                           terminationGracePeriodSeconds=8, activeDeadlineSeconds=2))
    wait_event(node, "a", "FailedPostStartHook")
    wait_event(node, "b", "FailedPreStopHook")
    for name, words in (("a", "PostStartHook failed: exit code 9: no queue"), ("b", "PreStopHook failed: exit code 6: no drain")):
        shown = node.cli("describe", "pod", name).stdout.partition("Events:")[2]
        check(re.search(rf"Warning +Failed\w+Hook .* coracle +bad +{words}$", shown, re.M), f"describe:\n{shown}")
        check(re.search(r"Normal +Started .* coracle +good +Container started$", shown, re.M), f"describe:\n{shown}")
        contains(node.cli("events", "--for", f"pod/{name}").stdout, words, "events")
    node.stop()


def test_http_fallback(t):
    """an HTTPS hook whose server speaks plain HTTP is repeated over HTTP, without its credentials"""
    node = start(t)

    def serve(server, connection, number):
        if number == 1:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        else:
            answers(response(200))(server, connection, number)
    server = Server(serve)
    node.put("fallback.yaml", pod("fallback", container(lifecycle={"postStart": {"httpGet": {
        "host": ADDRESS, "port": server.port, "scheme": "HTTPS", "path": "/hook",
        "httpHeaders": [{"name": "Authorization", "value": "secret"}, {"name": "X", "value": "y"}]}}})))
    node.wait_running("fallback")
    equal(wait_event(node, "fallback", "LifecycleHTTPFallback"),
          f"request to HTTPS lifecycle hook {ADDRESS}:{server.port} got HTTP response, retry with HTTP succeeded", "event")
    check("secret" not in server.requests[0] and "X: y" in server.requests[0], server.requests[0])
