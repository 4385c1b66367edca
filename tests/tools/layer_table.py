# SPDX-License-Identifier: Apache-2.0
"""layer_table - reads tests/tools/layers: {folder: the folders that it may include and call, itself among them}."""
import os

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers")


def read():
    with open(TABLE, encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    folders = [row[0] for row in rows if not row[0].startswith("@")]
    groups, table = {}, {}

    def expand(name):
        if name.startswith("@"):
            return groups[name]
        if name.endswith("/*"):
            return {f for f in folders if f == name[:-2] or f.startswith(name[:-1])}
        return {name}

    for name, *allowed in rows:
        found = set().union(*map(expand, allowed))
        if name.startswith("@"):
            groups[name] = found
        else:
            table[name] = found | {name}
    return table
