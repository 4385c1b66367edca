#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apiserver - a scripted kube-apiserver for tests: TLS, HTTP/2 and HTTP/1.1, lists, watches, patches, and faults on demand.

    server = ApiServer(folder)                       an authority, its certificates, and a server on 127.0.0.1
    server.kubeconfig("node-1")                      the path of a kubeconfig with a client certificate of that node
    server.store.put("Pod", {...})                   as a user with all rights (api_store.py)
    server.fault(code=429, match="/api/v1/pods", times=2, headers={"Retry-After": "1"})
    server.requests("PATCH", "/status")              what was asked, in order
    server.stop(); server.start()                    killed and started again, with the same objects and port

A node's rights are those of the Node authorizer and of NodeRestriction (api_rights.py).  By hand:

    tests/host/apiserver.py --folder DIR [--port N] [--host A] [--plain] [--http1] [--put FILE.json]...

prints {"url", "kubeconfig", ...} in a line and serves until its standard input ends; each line of JSON there is a call of a method,
{"do": "fault", "code": 500}, answered by a line.
"""
import argparse
import asyncio
import base64
import gzip
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
import urllib.parse
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import api_front  # noqa: E402
import api_rights  # noqa: E402
from api_pki import Authority  # noqa: E402
from api_store import BY_KIND, KINDS, Refused, Store, now  # noqa: E402

PATH = re.compile(r"^(?P<prefix>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?$")
GZIP_LEAST = 128 * 1024  # as the apiserver
BOOKMARK_S = 60


class Fault:
    """What happens to the next requests that match.  `what`: code, garbage, truncate, endless, drop, hang, slow, event."""

    def __init__(self, what, match="", method=None, times=1, code=500, body=None, headers=None, seconds=1.0, line=None):
        self.what, self.match, self.method, self.times = what, match, method, times
        self.code, self.body, self.headers, self.seconds, self.line = code, body, headers or {}, seconds, line

    def takes(self, request):
        if self.times == 0 or self.match not in urllib.parse.unquote(request.target) or self.method not in (None, request.method):
            return False
        self.times -= 1 if self.times > 0 else 0  # below 0: for ever
        return True


class ApiServer:
    def __init__(self, folder, port=0, plain=False, http2=True, host="127.0.0.1", names=("127.0.0.1", "localhost", "kubernetes")):
        self.folder, self.plain, self.http2, self.host, self.port = folder, plain, http2, host, port
        self.authority = Authority(folder)
        self.names = names
        self.certificate = self.authority.issue("apiserver", "/CN=kube-apiserver", names, server=True)
        self.store = Store()
        self.store.put("Namespace", {"metadata": {"name": "kube-node-lease"}})
        self.rights = api_rights.Rights(self.store)
        self.tokens = {"admin-token": ("system:admin", ["system:masters"])}
        self.revoked = set()  # tokens and common names
        self.signs = True  # certificate requests are approved and signed
        self.faults, self.recorded, self.lock = [], [], threading.Lock()
        self.bookmark_s, self.watch_list, self.version = BOOKMARK_S, True, "v1.36.2"
        self.loop, self.thread, self.front, self.listener = None, None, None, None
        self.start()

    # ---- life ----

    def start(self):
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        if not started.wait(10):
            raise RuntimeError("the apiserver did not start")

    def _run(self, started):
        asyncio.run(self._serve(started))

    def _tls(self):
        if self.plain:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        context.load_verify_locations(self.authority.ca)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["h2", "http/1.1"] if self.http2 and api_front.h2 else ["http/1.1"])
        context.sni_callback = lambda tls, name, _context: setattr(tls, "sni_of_client", name)
        return context

    async def _serve(self, started):
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.front = api_front.Front(self._handle)
        listener = socket.create_server((self.host, self.port))
        self.port = listener.getsockname()[1]
        server = await asyncio.start_server(self.front.serve, sock=listener, ssl=self._tls(), limit=1 << 20)
        started.set()
        await self.stopping.wait()
        server.close()
        for connection in list(self.front.connections):
            connection.drop()
        await asyncio.sleep(0)

    def stop(self):
        """Killed: the port refuses connections, and those that are open end at once.  The objects stay."""
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(10)

    def _call(self, fn):
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (fn(), done.set()))
        done.wait(10)

    def freeze(self, frozen=True):
        """Nothing is read or answered any more, and nothing is closed, until freeze(False)."""
        self._call(lambda: self.front.freeze(frozen))

    def reissue(self, **how):
        """Another certificate of the server, used from its next start; as in api_pki.py: days=-1, future=True."""
        self.certificate = self.authority.issue("apiserver", "/CN=kube-apiserver", self.names, server=True, **how)

    def deafen(self, number):
        """One connection is as one whose load balancer lost the server: it is open, nothing is read or answered."""
        self._call(lambda: [c.deafen() for c in self.front.connections if c.number == number])

    def pings(self):
        """Of HTTP/2, from clients; those of a stopped server are forgotten."""
        return self.front.pings

    def drop_connections(self):
        self._call(lambda: [c.drop() for c in list(self.front.connections)])

    # ---- what tests say and ask ----

    @property
    def url(self):
        return f"{'http' if self.plain else 'https'}://{self.host}:{self.port}"

    def fault(self, what="code", **how):
        fault = Fault(what, **how)
        with self.lock:
            self.faults.append(fault)
        return fault

    def no_faults(self):
        with self.lock:
            self.faults.clear()

    def requests(self, method=None, part=""):
        with self.lock:
            return [r for r in self.recorded if method in (None, r["method"]) and part in r["uri"]]

    def wait_request(self, method, part, fulfilled=lambda r: True, after=0, seconds=10):
        """The first request after number `after` that is as wished."""
        end = time.monotonic() + seconds
        while True:
            for r in self.requests(method, part):
                if r["n"] > after and r["code"] is not None and fulfilled(r):
                    return r
            if time.monotonic() > end:
                raise TimeoutError(f"no {method} of {part} within {seconds} s; the last: {[(r['method'], r['uri'], r['code']) for r in self.recorded[-10:]]}")
            time.sleep(0.02)

    def token(self, user, *groups):
        token = f"token-{uuid.uuid4().hex}"
        self.tokens[token] = (user, list(groups))
        return token

    def revoke(self, who):
        """A token, or the common name of client certificates."""
        self.revoked.add(who)

    def credentials(self, node, days=365, **more):
        """The message `credentials` of agent/kube/README.md, for a client certificate of the node."""
        crt, key = self.authority.issue(f"node-{node}", f"/O=system:nodes/CN=system:node:{node}", days=days)
        return {"server": self.url, "ca": self.authority.read("ca.crt"), "certificate": open(crt, encoding="ascii").read(),
                "key": open(key, encoding="ascii").read(), **more}

    def kubeconfig(self, node, token=None):
        crt, key = self.authority.issue(f"node-{node}", f"/O=system:nodes/CN=system:node:{node}")
        user = {"token": token} if token else {"client-certificate": crt, "client-key": key}
        path = os.path.join(self.folder, f"kubeconfig-{node}")
        with open(path, "w", encoding="ascii") as f:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "test",
                       "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": self.authority.ca}}],
                       "users": [{"name": "node", "user": user}],
                       "contexts": [{"name": "test", "context": {"cluster": "test", "user": "node"}}]}, f)
        return path

    # ---- a request ----

    async def _handle(self, request, reply):
        record = {"method": request.method, "uri": request.target, "code": None, "at": time.time(), "user": None, "http": request.connection.http,
                  "connection": request.connection.number, "sni": request.connection.sni, "request": None,
                  "headers": {k: v for k, v in request.headers.items() if k in ("accept", "content-type", "user-agent", "host", "accept-encoding")
                              or k.startswith("impersonate-")}}
        with self.lock:
            record["n"] = len(self.recorded) + 1
            self.recorded.append(record)
            fault = next((f for f in self.faults if f.takes(request)), None)
        try:
            if request.body:
                record["request"] = json.loads(request.body)
            if fault is not None and not await self._misbehave(fault, request, reply, record):
                return
            await self._route(request, reply, record, fault)
        except Refused as refused:
            await self._answer(request, reply, record, refused.code, refused.status(),
                               {"Retry-After": str(refused.details["retryAfterSeconds"])} if "retryAfterSeconds" in refused.details else {})
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as e:
            status = Refused(400, "BadRequest", f"the request cannot be understood: {e!r}").status()
            await self._answer(request, reply, record, 400, status)

    async def _misbehave(self, fault, request, reply, record):
        """False: the request is dealt with."""
        if fault.what == "code":
            body = fault.body if fault.body is not None else Refused(fault.code, "InternalError", f"scripted {fault.code}").status()
            await self._answer(request, reply, record, fault.code, body, fault.headers)
        elif fault.what == "garbage":
            record["code"] = 200
            await reply.head(200, {"Content-Type": "application/json", **fault.headers})
            await reply.data((fault.body or '{"kind": "Pod", oops').encode() + b"\n")
        elif fault.what == "endless":
            record["code"] = 200
            await reply.head(200, {"Content-Type": "application/json"})
            while not request.connection.closed:
                await reply.data(b"x" * 65536)
        elif fault.what == "truncate":
            record["code"] = 200
            await reply.head(200, {"Content-Type": "application/json"})
            await reply.truncated((fault.body or '{"type":"ADDED","object":{"kind":"Pod","metada').encode())
        elif fault.what == "drop":
            request.connection.drop()
        elif fault.what == "hang":
            await asyncio.sleep(fault.seconds if fault.seconds > 1 else 3600)
        elif fault.what == "slow":
            await asyncio.sleep(fault.seconds)
            return True
        else:
            return True  # "event": in the watch
        return False

    async def _answer(self, request, reply, record, code, body, headers=None):
        record["code"] = code
        data = body.encode() if isinstance(body, str) else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        if len(data) > GZIP_LEAST and "gzip" in request.headers.get("accept-encoding", ""):
            data, headers["Content-Encoding"] = gzip.compress(data, 4), "gzip"
        await reply.head(code, headers, len(data))
        if data:
            await reply.data(data)

    def _who(self, request):
        """(user, groups)."""
        authorization = request.headers.get("authorization", "")
        if authorization.startswith("Bearer "):
            token = authorization[7:]
            if token in self.tokens and token not in self.revoked:
                return self.tokens[token]
            raise Refused(401, "Unauthorized", "Unauthorized")
        name = request.connection.common_name
        if name is None and self.plain:
            return "system:admin", ["system:masters"]
        if name is None or name in self.revoked:
            raise Refused(401, "Unauthorized", "Unauthorized")
        return name, ["system:nodes"] if name.startswith("system:node:") else []

    async def _route(self, request, reply, record, fault):
        if request.path in ("/healthz", "/readyz", "/livez"):
            return await self._answer(request, reply, record, 200, "ok", {"Content-Type": "text/plain"})
        record["user"], groups = self._who(request)
        if request.path == "/version":
            return await self._answer(request, reply, record, 200, {"major": "1", "minor": "36", "gitVersion": self.version})
        query = dict(urllib.parse.parse_qsl(request.query))
        review = self._review(request.path, record["request"])
        if review is not None:
            return await self._answer(request, reply, record, 201, review)
        match = PATH.match(request.path)
        kind = match and next((k for k in KINDS if k.prefix == match["prefix"] and k.plural == match["plural"]), None)
        if kind is None:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        namespace, name, sub = match["namespace"], match["name"] and urllib.parse.unquote(match["name"]), match["sub"] or ""
        watch = query.get("watch") in ("true", "1")
        verb = {"GET": "watch" if watch else "get" if name else "list", "POST": "create", "PUT": "update", "PATCH": "patch",
                "DELETE": "delete" if name else "deletecollection"}[request.method]
        record["verb"] = verb
        body = record["request"] if isinstance(record["request"], dict) else {}
        self.rights.check(record["user"], groups, verb, kind, namespace, name, sub, query.get("fieldSelector"), body)
        if watch:
            return await self._watch(reply, record, kind, namespace, query, fault)
        code, answer = self._act(verb, kind, namespace, name, sub, query, body, request.headers.get("content-type", ""))
        return await self._answer(request, reply, record, code, answer)

    def _act(self, verb, kind, namespace, name, sub, query, body, content_type):
        store = self.store
        if verb == "get":
            return 200, store.get(kind.kind, name, namespace) or store.find(kind, namespace, name)
        if verb == "list":
            return 200, self._list(kind, namespace, query)
        if verb == "create" and kind.plural == "serviceaccounts" and sub == "token":
            return 201, self._service_token(namespace, name, body)
        if verb == "create":
            made = store.create(kind, {**body, "metadata": {**body.get("metadata", {}), **({"namespace": namespace} if namespace else {})}})
            if kind.plural == "certificatesigningrequests" and self.signs:
                self.sign(made["metadata"]["name"])
            return 201, made
        if verb == "update":
            return 200, store.replace(kind, namespace, name, body, sub)
        if verb == "patch":
            return 200, store.patch(kind, namespace, name, body, content_type, sub)
        if verb == "delete":
            return 200, store.delete(kind, namespace, name, body)
        for obj in store.list(kind, namespace, query.get("fieldSelector"), query.get("labelSelector"))[0]:
            store.delete(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], body)
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _list(self, kind, namespace, query):
        items, version = self.store.list(kind, namespace, query.get("fieldSelector"), query.get("labelSelector"))
        wanted, limit, offset = query.get("resourceVersion", ""), int(query.get("limit", 0)), 0
        if wanted not in ("", "0") and int(wanted) > int(version):
            raise Refused(504, "Timeout", f"Timeout: Too large resource version: {wanted}, current: {version}", retryAfterSeconds=1,
                          causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}])
        if "continue" in query:
            try:
                version, offset = json.loads(base64.b64decode(query["continue"]))
            except ValueError as e:
                raise Refused(400, "BadRequest", "invalid continue token: continue key is not valid") from e
            if int(version) < self.store.compacted:
                raise Refused(410, "Expired", "The provided continue parameter is too old to display a consistent list result.")
        meta = {"resourceVersion": version}
        if limit and wanted != "0" and len(items) > offset + limit:
            meta["continue"] = base64.b64encode(json.dumps([version, offset + limit]).encode()).decode()
            meta["remainingItemCount"] = len(items) - offset - limit
            items = items[offset:offset + limit]
        else:
            items = items[offset:]
        for item in items:
            item.pop("kind"), item.pop("apiVersion")
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": items}

    async def _watch(self, reply, record, kind, namespace, query, fault):
        fields, labels = query.get("fieldSelector"), query.get("labelSelector")
        initial, bookmarks = query.get("sendInitialEvents") == "true", query.get("allowWatchBookmarks") == "true"
        if initial and not self.watch_list:
            raise Refused(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for '
                          "watch unless the WatchList feature gate is enabled")
        wake, loop = asyncio.Event(), self.loop
        timeout = time.monotonic() + float(query.get("timeoutSeconds", 1800))

        async def line(what, obj):
            await reply.data(json.dumps({"type": what, "object": obj}, separators=(",", ":")).encode() + b"\n")

        async def bookmark(version, end=False):
            meta = {"resourceVersion": str(version), **({"annotations": {"k8s.io/initial-events-end": "true"}} if end else {})}
            await line("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})

        def woken():
            loop.call_soon_threadsafe(wake.set)

        self.store.watchers.add(woken)
        try:
            record["code"] = 200
            await reply.head(200, {"Content-Type": "application/json"})
            version = int(query.get("resourceVersion") or 0)
            if initial or version == 0:
                objects, newest = self.store.list(kind, namespace, fields, labels)
                for obj in objects:
                    await line("ADDED", obj)
                version = int(newest)
                if initial:
                    await bookmark(version, True)
            if fault is not None and fault.what == "event":
                await asyncio.sleep(fault.seconds)
                await reply.data((fault.line if isinstance(fault.line, str) else json.dumps(fault.line)).encode() + b"\n")
                return
            next_bookmark = time.monotonic() + self.bookmark_s
            while time.monotonic() < timeout:
                wake.clear()
                try:
                    events, version = self.store.since(kind, namespace, fields, labels, version)
                except Refused as refused:
                    await line("ERROR", refused.status())
                    return
                for _, what, obj in events:
                    await line(what, obj)
                if bookmarks and time.monotonic() >= next_bookmark:
                    await bookmark(version)
                    next_bookmark = time.monotonic() + self.bookmark_s
                try:
                    await asyncio.wait_for(wake.wait(), max(0, min(timeout, next_bookmark) - time.monotonic()))
                except asyncio.TimeoutError:
                    pass
        finally:
            self.store.watchers.discard(woken)

    # ---- reviews, tokens, certificates ----

    def _review(self, path, body):
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            user = self.tokens.get(body["spec"].get("token"))
            status = {"authenticated": False} if user is None or body["spec"]["token"] in self.revoked else \
                {"authenticated": True, "user": {"username": user[0], "groups": user[1] + ["system:authenticated"]}}
            return {**body, "kind": "TokenReview", "status": status}
        if path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
            allowed = "system:masters" in (body["spec"].get("groups") or []) or body["spec"].get("user") == "system:admin"
            return {**body, "kind": "SubjectAccessReview", "status": {"allowed": allowed}}
        return None

    def _service_token(self, namespace, name, body):
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds") or 3600
        if seconds < 600:
            raise Refused(422, "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: {seconds}: '
                          "may not specify a duration less than 10 minutes")
        claims = {"aud": spec.get("audiences") or ["https://kubernetes.default.svc"], "exp": int(time.time()) + seconds,
                  "sub": f"system:serviceaccount:{namespace}:{name}", "jti": uuid.uuid4().hex}
        text = ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in ({"alg": "none"}, claims, {}))
        self.tokens[text] = (claims["sub"], ["system:serviceaccounts"])
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(claims["exp"]))
        return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {"name": name, "namespace": namespace},
                "spec": {**spec, "expirationSeconds": seconds}, "status": {"token": text, "expirationTimestamp": end}}

    def sign(self, name, days=365):
        """Approves and signs a CertificateSigningRequest, as the controller manager does."""
        kind = BY_KIND["CertificateSigningRequest"]
        csr = self.store.get("CertificateSigningRequest", name)
        server = csr["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
        pem = self.authority.sign_text(base64.b64decode(csr["spec"]["request"]).decode(), ("127.0.0.1",) if server else (), days, server)
        condition = {"type": "Approved", "status": "True", "reason": "AutoApproved", "message": "scripted", "lastUpdateTime": now()}
        self.store.patch(kind, "", name, {"status": {"conditions": [condition], "certificate": base64.b64encode(pem.encode()).decode()}},
                         "application/merge-patch+json", "status")

    def deny(self, name, message="scripted"):
        condition = {"type": "Denied", "status": "True", "reason": "Denied", "message": message, "lastUpdateTime": now()}
        self.store.patch(BY_KIND["CertificateSigningRequest"], "", name, {"status": {"conditions": [condition]}}, "application/merge-patch+json", "status")


# ---- by hand, and for tests in other languages ----

def _do(server, call):
    what = call.pop("do")
    if what == "put":
        return server.store.put(call["object"]["kind"], call["object"])
    if what == "remove":
        return server.store.remove(**call)
    if what in ("compact", "all", "get"):
        return getattr(server.store, what)(**call)
    if what == "set":
        for key, value in call.items():
            setattr(server, key, value)
        return None
    if what not in ("fault", "no_faults", "stop", "start", "freeze", "drop_connections", "pings", "reissue", "revoke", "token", "credentials", "requests", "sign", "deny"):
        raise ValueError(f"unknown: {what}")
    result = getattr(server, what)(**call)
    return None if isinstance(result, Fault) else result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--plain", action="store_true", help="without TLS; every client may do everything")
    parser.add_argument("--http1", action="store_true", help="without HTTP/2")
    parser.add_argument("--node", default="node-1", help="the node of the kubeconfig")
    parser.add_argument("--put", action="append", default=[], metavar="FILE.json")
    args = parser.parse_args()
    server = ApiServer(args.folder, args.port, args.plain, not args.http1, args.host, ("127.0.0.1", "localhost", "kubernetes", args.host))
    for path in args.put:
        with open(path, encoding="utf-8") as f:
            obj = json.load(f)
        server.store.put(obj["kind"], obj)
    print(json.dumps({"url": server.url, "kubeconfig": server.kubeconfig(args.node), "credentials": server.credentials(args.node)}), flush=True)
    for text in sys.stdin:
        try:
            print(json.dumps({"result": _do(server, json.loads(text))}), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print(json.dumps({"error": repr(e)}), flush=True)


if __name__ == "__main__":
    main()
