# SPDX-License-Identifier: Apache-2.0
"""api_pki - an authority and certificates for tests, by openssl(1)."""
import os
import subprocess


def _run(*command, data=None):
    return subprocess.run(["openssl", *command], check=True, capture_output=True, input=data).stdout


class Authority:
    """Files in a folder: ca.crt, ca.key, and for each certificate <name>.crt and <name>.key."""

    def __init__(self, folder, name="coracle-test-ca"):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.ca = self.path("ca.crt")
        if not os.path.exists(self.ca):
            _run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650", "-subj", f"/CN={name}",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.path("ca.key"), "-out", self.ca)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), encoding="ascii") as f:
            return f.read()

    def issue(self, name, subject, sans=(), days=365, server=False, future=False):
        """(certificate, key) as paths.  days=-1: expired years ago; future: not valid yet."""
        key, crt, csr = (self.path(f"{name}.{e}") for e in ("key", "crt", "csr"))
        _run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", subject, "-keyout", key, "-out", csr)
        self.sign(csr, crt, sans, days, server, future)
        return crt, key

    def sign(self, csr, crt, sans=(), days=365, server=False, future=False):
        usage = "serverAuth" if server else "clientAuth"
        lines = ["basicConstraints=CA:FALSE", "keyUsage=critical,digitalSignature,keyEncipherment", f"extendedKeyUsage={usage}"]
        if sans:
            lines.append("subjectAltName=" + ",".join(f"IP:{s}" if s.replace(".", "").isdigit() or ":" in s else f"DNS:{s}" for s in sans))
        extensions = f"{crt}.ext"
        with open(extensions, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        if days >= 0 and not future:
            _run("x509", "-req", "-in", csr, "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial", "-days", str(days),
                 "-extfile", extensions, "-out", crt)
        else:  # openssl x509 makes none that has expired: such dates need `openssl ca`
            self._sign_between(csr, crt, extensions, *(("20990101000000Z", "20990102000000Z") if future else ("20200101000000Z", "20200102000000Z")))

    def _sign_between(self, csr, crt, extensions, start, end):
        config, index = self.path("ca.conf"), self.path("index.txt")
        with open(index, "w", encoding="ascii"):
            pass
        with open(config, "w", encoding="ascii") as f:
            f.write(f"[ca]\ndefault_ca=d\n[d]\ndatabase={index}\nnew_certs_dir={self.folder}\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n"
                    "unique_subject=no\n[p]\ncommonName=supplied\norganizationName=optional\n")
        _run("ca", "-batch", "-config", config, "-in", csr, "-cert", self.ca, "-keyfile", self.path("ca.key"), "-extfile", extensions,
             "-startdate", start, "-enddate", end, "-notext", "-out", crt)

    def sign_text(self, csr_pem, sans=(), days=365, server=False):
        csr, crt = self.path("request.csr"), self.path("request.crt")
        with open(csr, "w", encoding="ascii") as f:
            f.write(csr_pem)
        self.sign(csr, crt, sans, days, server)
        return self.read("request.crt")
