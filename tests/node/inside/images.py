# SPDX-License-Identifier: Apache-2.0
"""images - small images made here: the busybox of the test image and what else a test wants to find in it."""
import hashlib
import io
import json
import random
import tarfile


def busybox_layer():
    """The one layer of the test image, as tar members with their data."""
    with tarfile.open("/payload/busybox.tar") as outer:
        manifest = json.load(outer.extractfile("manifest.json"))[0]
        with tarfile.open(fileobj=io.BytesIO(outer.extractfile(manifest["Layers"][0]).read())) as layer:
            return [(m, layer.extractfile(m).read() if m.isfile() else None) for m in layer]


def entry(path, data=b"", mode=0o644, xattrs=None, **more):
    """A file of a layer."""
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(data), mode
    info.pax_headers = {f"SCHILY.xattr.{k}": v for k, v in (xattrs or {}).items()}
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for info, data in members:
            t.addfile(info, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def write(path, name, *members):
    """A docker archive with busybox and these members."""
    layer = tar(busybox_layer() + list(members))
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]},
                         "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}.tar"]}]).encode()
    with open(path, "wb") as f:
        f.write(tar([entry(config_name, config), entry(f"{digest}.tar", layer), entry("manifest.json", manifest)]))


def numbered(path, number, files=60):
    """An image localhost/numbered:<number> with files that /sums can check: `sha256sum -c /sums`."""
    rng = random.Random(number)
    members, sums = [], ""
    for i in range(files):
        data = rng.randbytes(rng.randrange(20000))
        members.append(entry(f"data/{i}", data))
        sums += f"{hashlib.sha256(data).hexdigest()}  /data/{i}\n"
    write(path, f"localhost/numbered:{number}", *members, entry("sums", sums.encode()))
