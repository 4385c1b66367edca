# SPDX-License-Identifier: Apache-2.0
"""Attacks on the local API: by local users without its certificate, and by a client that has one and sends what kubectl would not."""
import json
import os
import socket
import ssl
import time

from coracle import SLOW, check, contains, equal, read, run, until
from lone_api import MAPS, PORT, Api, config_map

CONNECTIONS = int(os.environ.get("ATTACK_CONNECTIONS") or 2000)


def kib(pid, key):
    return sum(int(line.split()[1]) for line in read(f"/proc/{pid}/smaps_rollup").splitlines() if line.startswith(key + ":"))


def hidden(api):
    return [f for f in os.listdir(api.node.manifests) if f.startswith(".")]


def answer(tls):
    """What the server sends until it closes or is silent for a second."""
    data = b""
    tls.settimeout(3)
    try:
        while True:
            more = tls.recv(1 << 16)
            if not more:
                return data
            data += more
            if b"\r\n\r\n" in data and len(data) > 200:
                tls.settimeout(0.3)
    except OSError:
        return data


def send_raw(api, data, certificate=True):
    """The answer to these bytes, on a connection of their own."""
    with socket.create_connection(("127.0.0.1", PORT), timeout=10) as plain, \
            api.context(certificate).wrap_socket(plain, server_hostname="127.0.0.1") as tls:
        try:
            for at in range(0, len(data), 1 << 16):
                tls.sendall(data[at:at + (1 << 16)])
        except OSError:
            pass
        return answer(tls)


def code_of(data):
    return int(data.split()[1]) if data.startswith(b"HTTP/1.1 ") else 0


def works(api, what):
    """A client with the certificate gets its answer soon."""
    start = time.monotonic()
    other = api.again()
    until(lambda: quick(other), 10, f"an answer during {what}")
    print(f"an answer during {what}: {time.monotonic() - start:.2f} s")
    if other.connection is not None:
        other.connection.close()


def quick(other):
    try:
        return other.ask("GET", f"{MAPS}/c")[0] == 200
    except OSError:
        return False


def test_crowd(t):
    """endless connections from clients without the certificate do not block the administrator; memory is bounded"""
    api = Api(t)
    api.must("POST", MAPS, config_map("c", {"x": "1"}))
    pid, held = api.kube_pid(), []
    before = kib(pid, "Pss")
    for _ in range(CONNECTIONS):  # never a byte
        try:
            held.append(socket.create_connection(("127.0.0.1", PORT), timeout=2))
        except OSError:
            continue
    works(api, f"{len(held)} silent connections")
    for s in held:
        s.close()
    held = []
    for i in range(300):  # a handshake without a certificate, then a request byte by byte
        try:
            s = socket.create_connection(("127.0.0.1", PORT), timeout=1)
            tls = api.context(False).wrap_socket(s, server_hostname="127.0.0.1")
            tls.sendall(b"GET / HTTP/1.1\r\nX: " + b"y" * i)
            held.append(tls)
        except OSError:
            continue
    print(f"{len(held)} slow requests without a certificate")
    works(api, "slow requests without a certificate")
    for s in held:
        s.close()
    held = []
    for i in range(100):  # large bodies without a certificate: they are not kept
        s = socket.create_connection(("127.0.0.1", PORT), timeout=5)
        try:
            tls = api.context(False).wrap_socket(s, server_hostname="127.0.0.1")
            tls.sendall(f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n".encode() + b"{" * 60000)
            tls.settimeout(0.2)
            tls.sendall(b"{" * 2900000)
            held.append(tls)
        except OSError:
            s.close()
    now = kib(pid, "Pss")
    print(f"coracle-kube: {before} KiB, {now} KiB with {len(held)} large bodies")
    check(SLOW > 1 or now < before + 32 * 1024,  # a sanitizer keeps freed memory
           f"{now} KiB for bodies without a certificate")
    for s in held:
        s.close()
    works(api, "the end")
    equal(api.kube_pid(), pid, "coracle-kube lives on")
    api.node.stop()


def own_certificate(t, name, subject):
    """A key and a certificate that nobody trusts."""
    path = f"{t.scratch}/{name}.pem"
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path, "-out", f"{path}.crt",
        "-days", "1", "-subj", subject)
    with open(path, "a", encoding="ascii") as f:
        f.write(read(f"{path}.crt"))
    return path


def test_strangers(t):
    """without the node's certificate there is no answer but 401, and without its group no other than 403"""
    api = Api(t)
    api.must("POST", MAPS, config_map("c", {"x": "1"}))
    equal(code_of(send_raw(api, b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n", certificate=False)), 401, "no certificate")
    for request in (b"GET /livez", b"GET /openapi/v2", b"GET " + MAPS.encode() + b"/c", b"DELETE " + MAPS.encode() + b"/c"):
        code = code_of(send_raw(api, request + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", certificate=False))
        check(code == 401, f"{request}: {code} without a certificate")
    stranger = own_certificate(t, "stranger", "/O=system:masters/CN=coracle-admin")
    context = ssl.create_default_context(cadata=api.authority)
    context.load_cert_chain(stranger)
    try:
        with socket.create_connection(("127.0.0.1", PORT), timeout=5) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as tls:
            tls.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\n\r\n")
            got = answer(tls)
        check(code_of(got) in (0, 401), f"a certificate of another authority: {got[:100]}")
    except ssl.SSLError:
        pass
    for junk in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", os.urandom(4096), b"\x16\x03\x01\xff\xff" + b"\0" * 70000):
        with socket.create_connection(("127.0.0.1", PORT), timeout=5) as s:
            s.sendall(junk)
            answer(s)
    works(api, "junk without TLS")
    api.node.stop()


HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0" + \
    b"".join(b"\0\0\x05\x01\x05" + n.to_bytes(4, "big") + b"\x82\x86\x84\x41\x8a" + b"\0\0\x04\x03\0" + n.to_bytes(4, "big") + b"\0\0\0\x08"
             for n in range(1, 20001, 2))

PATHS = ["/api/v1/namespaces/default/configmaps/%2e%2e", "/api/v1/namespaces/default/configmaps/..%2f..%2fetc", "/api/v1/namespaces/..%2f/configmaps/c",
         "/api/v1/namespaces/default/configmaps/c%00", "/api/v1/namespaces/default/../default/configmaps/c", "/api//v1/configmaps",
         "/api/v1/namespaces/default/configmaps/%ff%fe", "/api/v1/namespaces/a%2fb/configmaps/c", "/%2e%2e/%2e%2e/etc/passwd", "/../../etc/passwd",
         "/api/v1/namespaces/default/configmaps/" + "x" * 7000, "/api/v1" + "/x" * 3000, "*", "//", "/api/v1/namespaces/default/configmaps/c?watch=%00",
         "/api/v1/configmaps?limit=-1", "/api/v1/configmaps?limit=99999999999999999999", "/api/v1/configmaps?continue=" + "A" * 5000,
         "/api/v1/configmaps?labelSelector=" + "a," * 3000]


def test_hostile_requests(t):
    """giant heads, bodies at and beyond the limit, deep nesting, HTTP/2 frames, tricks with paths: an error, and the next request is answered"""
    api = Api(t)
    api.must("POST", MAPS, config_map("c", {"x": "1"}))
    pid = api.kube_pid()
    host = b" HTTP/1.1\r\nHost: x\r\n"
    equal(code_of(send_raw(api, b"GET /api" + host + b"X: " + b"y" * 200000 + b"\r\n\r\n")), 431, "a giant header")
    equal(code_of(send_raw(api, b"GET /api" + host + b"X: y\r\n" * 20000 + b"\r\n")), 431, "many headers")
    equal(code_of(send_raw(api, b"GET /" + b"x" * 200000 + host + b"\r\n")) in (414, 431), True, "a giant URL")
    head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    for size, codes in ((3 << 20, (400,)), ((3 << 20) + 1, (413,)), (1 << 40, (413, 0))):
        body = b"x" * min(size, (3 << 20) + 1)
        got = send_raw(api, (head % size).encode() + body)
        check(code_of(got) in codes, f"a body of {size} bytes: {got[:200]}")
    for bad in (b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: -1\r\n",
                b"Transfer-Encoding: gzip, chunked, x\r\n"):
        check(code_of(send_raw(api, b"POST /api" + host + bad + b"\r\nhello")) in (400, 0), f"{bad}")
    # Frames of HTTP/2 on a connection that speaks HTTP/1.1, as fast as they go.
    check(code_of(send_raw(api, HTTP2)) in (400, 0), "HTTP/2 frames")
    works(api, "HTTP/2 frames")
    for path in PATHS:
        got = send_raw(api, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        check(code_of(got) in (200, 400, 404, 414), f"{path[:100]}: {got[:200]}")
        check(b"root:" not in got, f"{path} reads a file")
    deep = {"json": '{"a":' * 100000, "list": "[" * 1000000, "closed": '{"data":' + '{"a":' * 5000 + "1" + "}" * 5001,
            "yaml": "a: " + "[" * 100000, "flow": "{a: " * 20000, "anchors": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
                f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi"))}
    for name, text in deep.items():
        for kind in ("application/json", "application/yaml"):
            code, got = api.ask("POST", MAPS, text, kind=kind)
            check(400 <= code < 500, f"{name} as {kind}: {code} {str(got)[:200]}")
        for kind in ("json", "merge", "strategic", "apply"):
            code, got = api.ask("PATCH", f"{MAPS}/c?fieldManager=m", text, kind=kind)
            check(400 <= code < 500, f"{name} as {kind}: {code} {str(got)[:200]}")
    works(api, "deep nesting")
    # A patch that copies itself: the object must not grow without an end.
    grow = [{"op": "add", "path": "/data/a", "value": "x" * 1000}] + \
        [{"op": "copy", "from": "/data", "path": f"/metadata/annotations/{n}"} for n in range(40)]
    code, got = api.ask("PATCH", f"{MAPS}/c", grow, kind="json")
    check(400 <= code < 500, f"a patch that doubles the object: {code} {str(got)[:200]}")
    double = [{"op": "add", "path": "/x", "value": {"y": "x" * 100}}] + [{"op": "copy", "from": "/x", "path": f"/x/{n}"} for n in range(60)]
    code, got = api.ask("PATCH", f"{MAPS}/c", double, kind="json")
    check(400 <= code < 500, f"a patch that doubles the object: {code} {str(got)[:200]}")
    equal(api.kube_pid(), pid, "coracle-kube lives on")
    print(f"coracle-kube at the end: {kib(pid, 'Pss')} KiB")
    equal(api.must("GET", f"{MAPS}/c")["data"], {"x": "1"}, "the object")
    api.node.stop()


NAMES = ["..", ".", "../x", "a/b", "/etc/passwd", "a\u0000b", "-x", "x" * 254, "A", "a_b", "%2e%2e", ".hidden", "#x", "x~", "\n", "ü", ""]


def test_escapes(t):
    """no name or namespace leads out of the manifest folder; foreign links and files are not written through; huge managedFields are refused"""
    api = Api(t)
    outside = sorted(os.listdir(t.scratch))
    for name in NAMES:
        for body in (config_map(name, {"x": "1"}), config_map("c", {"x": "1"}, namespace=name), config_map("c", {"x": "1"}, generateName=name)):
            if body["metadata"]["name"] == "c" and "generateName" not in body["metadata"]:
                path = f"/api/v1/namespaces/{name.replace('/', '%2F').replace('%', '%25')}/configmaps" if name.isascii() and name.isprintable() else MAPS
            else:
                path = MAPS
            try:
                code, got = api.ask("POST", path.replace(" ", "%20"), body)
            except (ValueError, OSError):
                api.connection = None
                continue
            if code == 201:
                contains(str(body["metadata"].get("generateName")), "", "a generated name")
                api.must("DELETE", f"{MAPS}/{got['metadata']['name']}") if got["metadata"]["namespace"] == "default" else None
            check(code in (201, 400, 404, 405, 409, 422), f"{name!r}: {code} {str(got)[:200]}")
    check(all(f.startswith("configmap-") and "/" not in f for f in os.listdir(api.node.manifests)), f"files: {os.listdir(api.node.manifests)}")
    equal([f for f in sorted(os.listdir(t.scratch)) if f not in outside], [], "files outside of the folder")
    # A name of the longest kind has its file, in a name that the file system takes.
    long = ".".join(["x" * 60] * 4)
    api.must("POST", MAPS, config_map(long, {"x": "1"}))
    api.must("PATCH", f"{MAPS}/{long}", {"data": {"x": "2"}}, kind="merge")
    api.must("DELETE", f"{MAPS}/{long}")
    # A link in the folder: the object is read, and not written through the link.
    target = f"{t.scratch}/target.yaml"
    with open(target, "w", encoding="utf-8") as f:
        f.write(json.dumps(config_map("linked", {"x": "1"})))
    os.symlink(target, f"{api.node.manifests}/linked.yaml")
    until(lambda: api.ask("GET", f"{MAPS}/linked")[0] == 200, 10, "the linked object")
    before = read(target)
    for method, body in (("PATCH", {"data": {"x": "2"}}), ("DELETE", None)):
        code, got = api.ask(method, f"{MAPS}/linked", body, kind="merge" if body else "application/json")
        equal(code, 403, f"{method}: {got}")
        contains(got["message"], "not a regular file", method)
    equal(read(target), before, "the link's target")
    os.unlink(f"{api.node.manifests}/linked.yaml")
    # A link where a new object's file would be.
    os.symlink("/etc/passwd", f"{api.node.manifests}/configmap-default-trap.yaml")
    passwd = read("/etc/passwd")
    code, got = api.ask("POST", MAPS, config_map("trap", {"x": "1"}))
    equal(code, 403, f"a new object where a link is: {got}")
    equal(read("/etc/passwd"), passwd, "the file behind the link")
    os.unlink(f"{api.node.manifests}/configmap-default-trap.yaml")
    # A file of another user stays his.
    path = f"{api.node.manifests}/theirs.yaml"
    api.node.put("theirs.yaml", config_map("theirs", {"x": "1"}))
    os.chown(path, 4711, 4711)
    os.chmod(path, 0o640)
    until(lambda: api.ask("GET", f"{MAPS}/theirs")[0] == 200, 10, "their object")
    api.must("PATCH", f"{MAPS}/theirs", {"data": {"x": "2"}}, kind="merge")
    st = os.stat(path)
    equal((st.st_uid, st.st_gid, st.st_mode & 0o7777), (4711, 4711, 0o640), "owner and mode")
    # managedFields that a client makes up.
    fields = {"f:data": {f"f:{n}": {} for n in range(3000)}}
    managed = [{"manager": f"m{n}", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields} for n in range(2)]
    code, got = api.ask("PUT", f"{MAPS}/theirs", config_map("theirs", {"x": "3"}, managedFields=managed))
    check(code in (200, 400, 413, 422), f"huge managedFields: {code} {str(got)[:200]}")
    for n in range(12):
        code, got = api.ask("PATCH", f"{MAPS}/theirs?fieldManager=manager{n}", {"data": {f"k{n}": "x"}}, kind="merge")
        check(code in (200, 400, 413, 422), f"one manager more: {code} {str(got)[:200]}")
    equal(api.ask("GET", f"{MAPS}/theirs")[0], 200, "the object")
    equal(hidden(api), [], "files that were not finished")
    api.node.stop()


test_crowd.seconds = 60
test_hostile_requests.seconds = 60
