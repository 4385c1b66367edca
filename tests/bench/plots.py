# SPDX-License-Identifier: Apache-2.0
"""Plots of the bench as SVG, made of its figures alone: lines over pods, and the steps of one pod as bars.

Colours of text and paper follow the reader's (prefers-color-scheme); those of the lines suit both.
"""
import html
import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 50, 60
COLOURS = ("#1f8fc0", "#d0603f", "#6f9a12", "#9273c4", "#c2931c")
STYLE = ("text{font:13px sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}.small{font-size:12px;fill:#555}"
         ".paper{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#444}"
         "@media(prefers-color-scheme:dark){text{fill:#ddd}.small{fill:#aaa}.paper{fill:#16191d}.grid{stroke:#343a40}.axis{stroke:#999}}")


def text(x, y, words, anchor="start", css="", **more):
    extra = "".join(f' {key}="{value}"' for key, value in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}"{extra}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, css):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'


def document(title, parts, height=HEIGHT):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">'
            f'<title>{html.escape(title)}</title><style>{STYLE}</style><rect width="{WIDTH}" height="{height}" class="paper"/>\n'
            + "\n".join(parts) + "\n</svg>\n")


def number(value):
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.3g}"


def ticks(top):
    """Round values from 0 to a little above the top."""
    step = 10 ** math.floor(math.log10(top / 4))
    step = next(step * k for k in (1, 2, 5, 10) if step * k * 5 >= top)
    return [step * i for i in range(math.ceil(top / step) + 1)]


def lines(title, x_name, y_name, series):
    """`series`: {name: {x: y}}.  Both axes begin at 0."""
    xs = sorted({x for points in series.values() for x in points})
    y_ticks = ticks(max(y for points in series.values() for y in points.values()))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(x, y):
        return LEFT + wide * x / xs[-1], TOP + high * (1 - y / y_ticks[-1])

    middle = TOP + high / 2
    parts = [text(LEFT, 26, title, css="title"), text(LEFT + wide / 2, HEIGHT - 14, x_name, "middle", "small"),
             text(20, middle, y_name, "middle", "small", transform=f"rotate(-90 20 {middle:.1f})")]
    for y in y_ticks:
        parts += [line(LEFT, at(0, y)[1], WIDTH - RIGHT, at(0, y)[1], "grid"), text(LEFT - 8, at(0, y)[1] + 4, number(y), "end")]
    free = math.inf
    for x in reversed(xs):  # labels that would touch the one after are left out
        if free - at(x, 0)[0] > 34:
            parts += [line(at(x, 0)[0], HEIGHT - BOTTOM, at(x, 0)[0], HEIGHT - BOTTOM + 5, "axis"),
                      text(at(x, 0)[0], HEIGHT - BOTTOM + 20, number(x), "middle")]
            free = at(x, 0)[0]
    parts.append(line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"))
    for i, (name, points) in enumerate(series.items()):
        colour, where = COLOURS[i % len(COLOURS)], [at(x, y) for x, y in sorted(points.items())]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in where)}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in where]
        parts += [f'<rect x="{LEFT + 12}" y="{TOP + 4 + 20 * i}" width="12" height="12" fill="{colour}"/>',
                  text(LEFT + 30, TOP + 15 + 20 * i, name)]
    return document(title, parts)


def bars(title, unit, groups):
    """`groups`: {name: [(step, begin, length)]}, a row for each step."""
    rows = sum(len(steps) + 1 for steps in groups.values())
    height, label = TOP + 24 * rows + 10 * len(groups) + BOTTOM, 160
    x_ticks = ticks(max(begin + length for steps in groups.values() for _, begin, length in steps))
    wide, foot = WIDTH - label - RIGHT - 50, height - BOTTOM + 8

    def at(x):
        return label + wide * x / x_ticks[-1]

    parts = [text(20, 26, title, css="title"), text(label + wide / 2, height - 14, unit, "middle", "small")]
    for x in x_ticks:
        parts += [line(at(x), TOP, at(x), foot, "grid"), text(at(x), foot + 18, number(x), "middle")]
    parts.append(line(label, TOP, label, foot, "axis"))
    y = TOP
    for i, (name, steps) in enumerate(groups.items()):
        parts.append(text(20, y + 16, name, css="title"))
        for step, begin, length in steps:
            y += 24
            parts += [text(label - 8, y + 16, step, "end"),
                      f'<rect x="{at(begin):.1f}" y="{y + 4:.1f}" width="{max(at(length) - label, 1):.1f}" height="16" fill="{COLOURS[i]}"/>',
                      text(at(begin + length) + 6, y + 16, f"{length:.1f}", css="small")]
        y += 34
    return document(title, parts, height)
