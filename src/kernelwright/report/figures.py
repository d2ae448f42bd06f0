"""The report's pictures as inline SVG whose colours follow the page (light or dark).

What it does: the search's progress and the roofline, by matplotlib's SVG backend without pyplot. Colours are written as marker
values and replaced by the page's CSS variables, text stays text in the page's font, ids and bytes are the same each time.
What it does not do: lay the page out (see `render`).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.report.data import ProgressPoint
from kernelwright.result.certificate import Roofline

# Marker colour -> CSS variable of report.css.
_COLOURS = {
    "#010101": "var(--ink)", "#020202": "var(--muted)", "#030303": "var(--line)", "#040404": "var(--accent)",
    "#050505": "var(--other)", "#060606": "var(--card)",
}  # fmt: skip
INK, MUTED, LINE, ACCENT, OTHER, CARD = _COLOURS
_SIZE = (4.9, 3.1)  # inches: 353 points wide, so that text is readable at a phone's width


def progress_figure(points: Sequence[ProgressPoint], baseline_ns: float | None) -> str:
    """Screening time of each correct candidate, the best so far as a line, the baseline dashed. SVG text."""

    def draw(figure: Any) -> None:
        axes = _axes(figure, "evaluations", "time a call")
        best: list[tuple[int, float]] = []
        for number, point in enumerate(points, 1):
            if point.median_ns is not None:
                axes.plot(number, point.median_ns, "o", color=MUTED, markersize=3.2, markeredgewidth=0, alpha=0.55)
                if not best or point.median_ns < best[-1][1]:
                    best.append((number, point.median_ns))
        if best:
            xs, ys = zip(*best, (len(points), best[-1][1]), strict=True)
            axes.step(xs, ys, where="post", color=ACCENT, linewidth=2)
            axes.plot([n for n, _ in best], [ns for _, ns in best], "o", color=ACCENT, markersize=4.5)
        failed = [number for number, point in enumerate(points, 1) if point.median_ns is None]
        low = min([ns for _, ns in best] + ([baseline_ns] if baseline_ns else []), default=1.0)
        high = max([p.median_ns for p in points if p.median_ns] + ([baseline_ns] if baseline_ns else []), default=10.0)
        if failed:
            axes.plot(failed, [low / 1.25] * len(failed), "x", color=OTHER, markersize=3.5, markeredgewidth=1)
        if baseline_ns:
            axes.axhline(baseline_ns, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            axes.annotate(
                "PyTorch eager", xy=(1, baseline_ns), xycoords=axes.get_yaxis_transform(), xytext=(0, 4),
                textcoords="offset points", color=INK, ha="right", annotation_clip=False,
            )  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylim(low / 1.5, high * 1.4)
        axes.set_xlim(0, max(len(points), 1) + 0.5)
        _time_axis(axes)
        axes.xaxis.get_major_locator().set_params(integer=True)

    return _svg(draw, "progress", _progress_words(points, baseline_ns))


def roofline_figure(roofline: Roofline, times: Sequence[tuple[str, float]]) -> str:
    """The machine's two limits, and where each of `times` (name, nanoseconds; the kernel first) stands. SVG text."""
    ours = times[0][0]
    intensity = max(roofline.flops, 1.0) / max(roofline.bytes, 1)
    ridge = roofline.peak_gflops / roofline.bandwidth_gbps

    def draw(figure: Any) -> None:
        axes = _axes(figure, "FLOP a byte", "GFLOP/s")
        left, right = min(intensity, ridge) / 30, max(intensity, ridge) * 6
        xs = [left, ridge, right]
        roof = [min(roofline.peak_gflops, x * roofline.bandwidth_gbps) for x in xs]
        axes.loglog(xs, roof, color=INK, linewidth=1.6)
        axes.fill_between(xs, roof, [roofline.peak_gflops * 1e3] * 3, color=LINE, alpha=0.45, linewidth=0)
        axes.axvline(intensity, color=MUTED, linewidth=0.8, linestyle=(0, (2, 3)))
        achieved = [(name, max(roofline.flops, 1.0) / ns) for name, ns in times]
        for name, value in achieved:
            colour, size = (ACCENT, 8.0) if name == ours else (OTHER, 5.5)
            axes.plot(intensity, value, "o", color=colour, markersize=size, zorder=3, markeredgecolor=CARD, markeredgewidth=1)
        bottom = min(value for _, value in achieved) / 3
        axes.set_xlim(left, right)
        top = max(roofline.peak_gflops * 3, *(2 * value for _, value in achieved))
        axes.set_ylim(min(bottom, roof[0]), top)
        flip = intensity > ridge  # under the flat roof there is room to the left, under the slope to the right
        _labels(axes, intensity, achieved, ours, flip)
        peak = f"{roofline.peak_gflops:.3g} GFLOP/s"
        axes.text(right / 1.15, roofline.peak_gflops * 1.15, peak, ha="right", va="bottom", color=INK)
        at = math.sqrt(left * ridge)
        axes.text(at / 1.25, at * roofline.bandwidth_gbps * 1.25, f"{roofline.bandwidth_gbps:.3g} GB/s", ha="right", color=INK)

    parts = ", ".join(f"{name} {max(roofline.flops, 1.0) / ns:.3g} GFLOP/s" for name, ns in times)
    words = (
        f"Roofline at {intensity:.3g} FLOP a byte: the machine's limits are {roofline.bandwidth_gbps:.3g} GB/s and "
        f"{roofline.peak_gflops:.3g} GFLOP/s; reached: {parts}."
    )
    return _svg(draw, "roofline", words)


def _labels(axes: Any, x: float, achieved: Sequence[tuple[str, float]], ours: str, flip: bool) -> None:
    """Names beside the points, moved apart where they would lie on each other."""
    low, high = axes.get_ylim()
    gap = (math.log(high) - math.log(low)) / 13
    at = -math.inf
    for name, value in sorted(achieved, key=lambda pair: pair[1]):
        at = max(math.log(value), at + gap)
        axes.annotate(
            name, (x, value), (x / 1.35 if flip else x * 1.35, math.exp(at)), ha="right" if flip else "left", va="center",
            color=ACCENT if name == ours else INK, weight="bold" if name == ours else "normal", parse_math=False,
        )  # fmt: skip


def _axes(figure: Any, x: str, y: str) -> Any:
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(LINE)
    axes.tick_params(colors=MUTED, which="both", length=3)
    axes.grid(True, color=LINE, linewidth=0.6, which="major")
    axes.set_axisbelow(True)
    axes.set_xlabel(x, color=MUTED)
    axes.set_ylabel(y, color=MUTED)
    return axes


def _time_axis(axes: Any) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    low, high = axes.get_ylim()
    steps = [m * 10.0**e for e in range(0, 13) for m in (1, 2, 5)]
    axes.yaxis.set_major_locator(FixedLocator([s for s in steps if low <= s <= high]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ns, _: duration(ns)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def duration(ns: float) -> str:
    """A time with three figures and its unit: 12.3 µs."""
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if ns < limit * 0.9995:
            return f"{_three(ns / limit * 1e3)} {unit}"
    return f"{_three(ns / 1e9)} s"


def _three(value: float) -> str:
    value = float(f"{value:.3g}")
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text and value == round(value) else text


def _progress_words(points: Sequence[ProgressPoint], baseline_ns: float | None) -> str:
    times = [p.median_ns for p in points if p.median_ns is not None]
    if not times:
        return f"{len(points)} evaluations, none of them correct."
    best = min(times)
    text = f"{len(points)} evaluations, {len(times)} correct; from {duration(times[0])} to {duration(best)} a call"
    return text + (f"; eager takes {duration(baseline_ns)}." if baseline_ns else ".")


def _svg(draw: Callable[[Any], None], name: str, words: str) -> str:
    """Run `draw` on a new figure; its SVG element, in the page's colours, described by `words`."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9, "axes.labelsize": 9}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        draw(figure)
        for axes in figure.axes:
            axes.patch.set_alpha(0)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'font: (bold |)([\d.]+)px [^;"]*', r"font: \g<1>\g<2>px var(--sans)", svg)
    svg = re.sub(r"font: (\d+) ([\d.]+)px [^;\"]*", r"font: \g<1> \g<2>px var(--sans)", svg)
    for marker, variable in _COLOURS.items():
        svg = svg.replace(marker, variable)
    svg = re.sub(r'(?<=<svg) [^>]*?(viewBox="[^"]*")[^>]*', r' xmlns:xlink="http://www.w3.org/1999/xlink" \1', svg, count=1)
    escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escaped}"', 1)
    return re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
