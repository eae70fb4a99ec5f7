"""A picture of rows as SVG: accuracy against what a row costs, with the spread over the seeds. A line of panels for each
group of rows, and in it one panel a cost."""
import math
from html import escape

WIDE, LEAST_HIGH, MARGIN, NAMES, TOP, BELOW, TEXT = 560, 380, 52, 140, 34, 36, 11
COLORS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"]


def ticks(low, high):
    """Round numbers between both, about five."""
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9) / 4))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= 6)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def decades(low, high):
    """Round multiples of the powers of ten between both, a handful."""
    for factors in ((1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
        found = [f * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
                 for f in factors if low <= f * 10.0 ** e <= high]
        if len(found) >= 4:
            break
    return found


def widened(values, share):
    low, high = min(values), max(values)
    more = share * (high - low) or 1
    return low - more, high + more


def apart(wanted, least, low, high):
    """Heights from low to high, in the order of those that are wanted and near them, at this distance at least."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed, at = [0.0] * len(wanted), low - least
    for n, i in enumerate(order):
        at = max(at + least, min(wanted[i], high - least * (len(order) - 1 - n)))
        placed[i] = at
    return placed


def line(x1, y1, x2, y2, color, width=1):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}" stroke-width="{width}"/>'


def words(x, y, text, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'


def panel(left, top, high, color, title, points, form):
    """Points are (name, cost, accuracy, spread), costs above 0. Names stand at the right, joined to their points."""
    right, bottom = left + WIDE - NAMES, top + high
    low, up_to = min(p[1] for p in points) / 1.2, max(p[1] for p in points) * 1.2
    least, most = widened([p[2] + s * p[3] for p in points for s in (-1, 1)], 0.06)
    across = lambda v: left + MARGIN + (right - left - MARGIN) * math.log(v / low) / math.log(up_to / low)
    up = lambda v: bottom - high * (v - least) / (most - least)
    out = [words((left + MARGIN + right) / 2, top - 14, title, "middle", 'font-weight="bold"')]
    for v in ticks(least, most):
        out += [line(left + MARGIN, up(v), right, up(v), "#ddd"), words(left + MARGIN - 6, up(v) + 4, f"{v:g}", "end")]
    for v in decades(low, up_to):
        out += [line(across(v), top, across(v), bottom, "#ddd"), words(across(v), bottom + 16, form(v), "middle")]
    heights = apart([up(p[2]) for p in points], TEXT + 2, top, bottom)
    for (name, cost, accuracy, spread), height in zip(points, heights):
        x, y = across(cost), up(accuracy)
        out += [line(x, y, right + 6, height, "#ccc", 0.6), words(right + 9, height + 4, name)]
        if spread:
            out.append(line(x, up(accuracy - spread), x, up(accuracy + spread), color, 2))
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"><title>{escape(f"{name}: {accuracy:.2f}")}'
                   "</title></circle>")
    return out


def picture(rows, panels):
    """rows: (name, group, {cost: number}, accuracy, spread); panels: (cost, title, a function that makes words of it). A row
    is in the panels of those costs that are above 0."""
    out, top = [], 0
    for i, group in enumerate(dict.fromkeys(r[1] for r in rows)):
        of_group = [r for r in rows if r[1] == group]
        high = max(LEAST_HIGH, (TEXT + 2) * len(of_group))
        for j, (cost, title, form) in enumerate(panels):
            points = [(name, costs[cost], a, s) for name, _, costs, a, s in of_group if costs.get(cost)]
            if points:
                out += panel(j * WIDE, top + TOP, high, COLORS[i % len(COLORS)], f"{group}: {title}", points, form)
        top += TOP + high + BELOW
    wide = WIDE * len(panels)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {top}" width="{wide}" height="{top}" '
            f'font-family="sans-serif" font-size="{TEXT}">')
    return "\n".join([head, f'<rect width="{wide}" height="{top}" fill="white"/>'] + out + ["</svg>", ""])
