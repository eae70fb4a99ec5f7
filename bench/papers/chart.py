"""Pictures of published figures beside ours, as SVG: bars in pairs, and curves."""
import math, os, sys
from html import escape

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from picture import COLORS, TEXT, apart, decades, line, ticks, words  # noqa: E402

OURS, PUBLISHED = "#1f77b4", "#c0c0c0"


def svg(wide, high, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
            f'font-family="sans-serif" font-size="{TEXT}">')
    return "\n".join([head, f'<rect width="{wide}" height="{high}" fill="white"/>'] + parts + ["</svg>", ""])


def box(x, y, wide, high, color):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{color}"/>'


def bars(title, unit, rows, wide=640):
    """rows: (name, published or None, ours). A gray bar for what was published, and ours below it."""
    names, tall, top = 190, 15, 52
    most = max(v for _, a, b in rows for v in (a or 0, b)) * 1.12
    across = lambda v: names + (wide - names - 20) * v / most
    out = [words(wide / 2, 18, f"{title}, {unit}", "middle", 'font-weight="bold"'),
           box(names, 28, 10, 10, PUBLISHED), words(names + 15, 37, "published"),
           box(names + 90, 28, 10, 10, OURS), words(names + 105, 37, "ours")]
    y = top
    for name, published, ours in rows:
        out.append(words(names - 8, y + tall + 3, name, "end"))
        for value, color in ((published, PUBLISHED), (ours, OURS)):
            if value is not None:
                out += [box(names, y, across(value) - names, tall - 2, color),
                        words(across(value) + 4, y + tall - 5, f"{value:.3g}")]
            y += tall
        y += 8
    return svg(wide, y + 6, out)


def curves(title, x_title, y_title, series, wide=640, high=340, log_x=False, log_y=False):
    """series: (name, points (x, y), dashed). Names stand at the right, in the color of their curve."""
    left, right, top, bottom = 60, wide - 150, 34, high - 44
    points = [p for _, of, _ in series for p in of]
    low_x, most_x = min(p[0] for p in points), max(p[0] for p in points)
    low_y, most_y = min(p[1] for p in points), max(p[1] for p in points)
    scale = lambda log: (math.log if log else (lambda v: v))

    def place(v, low, most, begin, end, log):
        f = scale(log)
        return begin + (end - begin) * (f(v) - f(low)) / ((f(most) - f(low)) or 1)
    if not log_y:
        low_y, most_y = low_y - 0.05 * (most_y - low_y), most_y + 0.05 * (most_y - low_y)
    across = lambda v: place(v, low_x, most_x, left, right, log_x)
    up = lambda v: place(v, low_y, most_y, bottom, top, log_y)
    middle = (left + right) / 2, (top + bottom) / 2
    out = [words(middle[0], 18, title, "middle", 'font-weight="bold"'), words(middle[0], high - 8, x_title, "middle"),
           words(14, middle[1], y_title, "middle", f'transform="rotate(-90 14 {middle[1]:.0f})"')]
    for v in (decades if log_y else ticks)(low_y, most_y):
        out += [line(left, up(v), right, up(v), "#ddd"), words(left - 6, up(v) + 4, f"{v:.4g}", "end")]
    for v in sorted({p[0] for p in points}) if log_x else ticks(low_x, most_x):
        x = across(v)
        out += [line(x, top, x, bottom, "#ddd"), words(x, bottom + 16, f"{v:.4g}", "middle")]
    heights = apart([up(of[-1][1]) for _, of, _ in series], TEXT + 3, top, bottom)
    for i, ((name, of, dashed), height) in enumerate(zip(series, heights)):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in of)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        out.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.6"{dash}/>')
        for x, y in of if len(of) < 20 else ():
            out.append(f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="2.5" fill="{color}"/>')
        out += [line(across(of[-1][0]), up(of[-1][1]), right + 8, height, "#ccc", 0.6),
                f'<text x="{right + 11}" y="{height + 4:.1f}" fill="{color}">{escape(name)}</text>']
    return svg(wide, high, out)
