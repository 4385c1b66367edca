# SPDX-License-Identifier: Apache-2.0
"""kubeconfig_golden - one recorded case of the real client's way with kubeconfig files, compared with ours.

The recordings are not part of the repository: the folder `kubeconfig` with its README.md, `cases` and `pki` is
searched in CORACLE_GOLDEN, and as ../shared/golden beside the checkout.  Compared is what decides about the
request: whether it is sent at all, and then URL, Authorization, impersonation, client certificate, SNI, proxy,
compression, and what an exec plugin was given.  What the real client does with a prompt or with its default
server, both of which an agent does not have, is an error here.
"""
import base64
import hashlib
import json
import os
import re
import ssl
import subprocess
import urllib.parse

from coracle import TOP, Skip, check, equal

PORTS = {"tls": 6443, "tls6": 6444, "wrongname": 6445, "expired": 6446, "otherca": 6447, "nosan": 6448, "plain": 8080,
         "proxy": 3128, "sproxy": 3129, "proxy407": 3130, "socks5": 1080, "closed": 9}
# Failures of the connection: the request is right, the server is not.
AFTER_THE_REQUEST = ("Unable to connect to the server: tls:", "Unable to connect to the server: http:",
                     "Unable to connect to the server: read tcp", "Unable to connect to the server: dial tcp",
                     "Unable to connect to the server: Proxy Authentication Required", "You must be logged in",
                     "was refused - did you specify")
# Refused by coracle-kube, which has OpenSSL; the daemon has not.
ELSEWHERE = ("auth-cert-key-mismatch",)
NO_DEFAULT_SERVER = "The connection to the server localhost:8080 was refused"


def folder():
    for path in (os.environ.get("CORACLE_GOLDEN"), f"{TOP}/../shared/golden"):
        if path and os.path.isdir(f"{path}/kubeconfig/cases"):
            return f"{path}/kubeconfig"
    raise Skip("no recordings of kubeconfig files: CORACLE_GOLDEN names no folder with them")


def fill(text, directory, golden):
    def pki(match):
        with open(f"{golden}/pki/{match.group(2)}", "rb") as f:
            data = f.read()
        return base64.b64encode(data).decode() if match.group(1) == "b64" else data.decode()
    text = text.replace("<dir>", directory)
    text = re.sub(r"<port:(\w+)>", lambda m: str(PORTS[m.group(1)]), text)
    return re.sub(r"<(b64|pem):([^>]+)>", pki, text)


def write_files(case, directory, golden):
    for path in ("cwd", "home"):
        os.makedirs(f"{directory}/{path}", exist_ok=True)
    for name, content in case.get("files", {}).items():
        path = f"{directory}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if content == "<directory>":
            os.makedirs(path, exist_ok=True)
            continue
        with open(path, "w", encoding="utf-8") as f:
            f.write(fill(content, directory, golden))
        os.chmod(path, 0o755 if name.endswith(".sh") else int(case.get("modes", {}).get(name, "600"), 8))


def environment(case, directory, golden):
    env = {"PATH": "/usr/bin:/bin", "HOME": fill(case.get("home") or f"{directory}/home", directory, golden)}
    return env | {k: fill(v, directory, golden) for k, v in case.get("env", {}).items()}


class Request:
    """What we would send, by the message."""

    def __init__(self, message):
        url = urllib.parse.urlsplit(message["server"] + "/version")
        self.host, self.path = url.netloc, url.path
        self.scheme = url.scheme
        self.authorization = None
        if "token" in message:
            self.authorization = "Bearer " + message["token"]
        if "username" in message:
            check("token" not in message, "basic authentication and a token")
            pair = f"{message['username']}:{message.get('password', '')}"
            self.authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        self.certificate = None
        if "certificate" in message:
            der = ssl.PEM_cert_to_DER_cert(re.search(r"-----BEGIN CERTIFICATE.*?END CERTIFICATE-----",
                                                     message["certificate"], re.S).group(0))
            self.certificate = hashlib.sha256(der).hexdigest()
        name = message.get("tlsServerName") or url.hostname
        self.sni = None if self.scheme == "http" or re.fullmatch(r"[\d.]+|.*:.*", name) else name
        self.proxy = message.get("proxyURL")
        self.compressed = not message.get("noCompression")
        self.impersonated = {}
        who = message.get("impersonate", {})
        for member, header in (("user", "Impersonate-User"), ("uid", "Impersonate-Uid"), ("groups", "Impersonate-Group")):
            if who.get(member):
                self.impersonated[header.lower()] = who[member] if isinstance(who[member], list) else [who[member]]
        for key, values in who.get("extra", {}).items():
            escaped = re.sub(r"[^A-Za-z0-9!#$&'*+.^_`|~-]", lambda m: "".join(f"%{b:02x}" for b in m.group(0).encode()), key)
            self.impersonated[f"impersonate-extra-{escaped}".lower()] = values


def compare_request(ours, recorded):
    """`recorded`: the entries of `requests`: through proxies, then at a server."""
    proxies = [r for r in recorded if r["at"] in ("proxy", "sproxy", "proxy407", "socks5")]
    servers = [r for r in recorded if r not in proxies]
    equal(ours.proxy is not None, bool(proxies), "whether a proxy is asked")
    if proxies:
        check(str(PORTS[proxies[0]["at"]]) in ours.proxy, f"the proxy {ours.proxy}: {proxies[0]}")
        to = proxies[0].get("connect", proxies[0].get("request", ""))
        check(f"{ours.host}" in fill(to, "", "").replace("name ", ""), f"the target of the proxy: {to}")
        user = urllib.parse.urlsplit(ours.proxy)
        sent = proxies[0].get("headers", {}).get("Proxy-Authorization")
        pair = f"{urllib.parse.unquote(user.username or '')}:{urllib.parse.unquote(user.password or '')}"
        equal("Basic " + base64.b64encode(pair.encode()).decode() if user.username else None, sent, "Proxy-Authorization")
        if not ours.proxy.startswith("socks"):
            check(proxies[0]["at"] != "socks5", "an HTTP proxy")
    for server in servers:
        equal(ours.host.rsplit(":", 1)[-1], str(PORTS[server["at"]]), "the port")
        if server.get("handshake"):
            continue
        equal(ours.path, server["request"].split()[1].split("?")[0], "the path")
        headers = server.get("headers", {})
        equal(ours.authorization, headers.get("Authorization", server.get("authorization")), "Authorization")
        if "headers" in server:
            equal(ours.compressed, "Accept-Encoding" in headers, "compression")
            recorded_as = {k.lower(): v if isinstance(v, list) else [v] for k, v in headers.items()
                           if k.startswith("Impersonate-")}
            equal(ours.impersonated, recorded_as, "impersonation")
        if server["at"] != "plain":
            equal(ours.sni, server.get("sni"), "SNI")
            equal(ours.certificate, (server.get("clientCert") or {}).get("sha256"), "the client certificate")


def run_ours(t, case, directory, golden, flags):
    uid = case.get("uid")
    done = subprocess.run([f"{t.build}/tests/host/kubeconfig", *flags], cwd=f"{directory}/{case.get('cwd') or 'cwd'}",
                          env=environment(case, directory, golden), capture_output=True, text=True, timeout=30, check=False,
                          input=case.get("stdin", ""), user=uid, group=uid, extra_groups=[] if uid else None)
    return done.returncode, done.stdout, done.stderr


def of_session(run):
    """The first request of a session."""
    return next((s for s in run["session"] if "get" in s), None)


def compare_log(recorded, path, directory, golden):
    """What the plugin noted; of more runs than one the first."""
    with open(path, encoding="utf-8") as f:
        ours = f.read()
    recorded = fill(recorded, directory, golden)
    if "KUBERNETES_EXEC_INFO=" not in recorded:
        return
    info = re.compile(r"KUBERNETES_EXEC_INFO=(\{.*\})\n\n")
    equal(json.loads(info.search(ours).group(1)), json.loads(info.search(recorded).group(1)), "KUBERNETES_EXEC_INFO")
    equal(info.sub("", ours).strip(), info.sub("", recorded[:recorded.find("stdin=") + 7]).strip(), "arguments and environment")


def run_case(t, name):
    golden = folder()
    with open(f"{golden}/cases/{name}.json", encoding="utf-8") as f:
        case = json.load(f)
    runs = [r for r in case["runs"] if "session" in r or "--raw /version" in r["command"]]
    if not runs:
        return
    run, directory = runs[0], f"{t.scratch}/k"
    os.makedirs(directory)
    os.chmod(t.scratch, 0o755)
    write_files(case, directory, golden)
    if case.get("uid"):
        subprocess.run(["chmod", "-R", "o+x", f"{directory}"], check=False)
    flags = [fill(f, directory, golden) for f in case.get("flags", [])]
    code, out, err = run_ours(t, case, directory, golden, flags)
    session = of_session(run) if "session" in run else None
    stderr = run.get("stderr", "")
    print(f"ours: {code} {out}{err}\ntheirs: {run.get('exit')} {stderr}")
    if name in ELSEWHERE:
        run = dict(run, requests=[], exit=0)
    refused = session is None and run["exit"] != 0 and not run["requests"] and \
        (NO_DEFAULT_SERVER in stderr or not any(text in stderr for text in AFTER_THE_REQUEST))
    if refused:
        check(code == 1, "this configuration is refused")
        check(len(err.strip().split("\n")[-1]) > 20, "the error says what is wrong")
        return
    equal(code, 0, "the status")
    if not session and not run["requests"]:
        return  # nothing listened
    ours = Request(json.loads(out))
    compare_request(ours, session["requests"] if session else run["requests"])
    log = session.get("execLog") if session else run.get("execLog")
    if log:
        path = next(os.path.join(d, "exec.log") for d, _, files in os.walk(directory) if "exec.log" in files)
        compare_log(log, path, directory, golden)


def names():
    return sorted(f[:-5] for f in os.listdir(f"{folder()}/cases") if f.endswith(".json"))
