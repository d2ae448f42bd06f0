"""The report page: complete, self-contained, harmless whatever the task is called, and readable by a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import made
import pytest

from kernelwright.records import Interval
from kernelwright.report import render
from kernelwright.report.figures import duration, progress_figure, roofline_figure
from kernelwright.report.highlight import highlight
from kernelwright.result.certificate import Claim, Roofline

VOID = {"meta", "br", "link", "img", "input", "hr"}
BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Page(HTMLParser):
    """Text, tags and attributes of a page; refuses tags that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.words.append(data)


def test_the_claim_and_what_it_rests_on_are_there() -> None:
    text = Page(render(made.report())).text
    for words in (
        "softmax", "1.60×", "1.50× to 1.70×", "torch.compile", "20 paired rounds", "strict", "Zen 3", "2 threads", "1.10 ms",
        "it took more than 120 s", "2.1%", "library call", "no lowering", "aten._softmax", "1.2e-07", "bit by bit", "2 of 2",
        "6 candidates in 12 s, 5 of them correct", "that it is right", "tile.y.i = 4", "kernelwright replay certificate.json",
        "from module import Model", "one notice", "g++ 12", "ff" * 32,
    ):  # fmt: skip
        assert words in text, words


def test_the_twin_of_the_kernel_is_no_row_and_no_point() -> None:
    html = render(made.report())
    assert "again</th>" not in html
    assert ">again<" not in html
    assert "this kernel" in html


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = Page(render(made.report()))
    assert not {"script", "link", "iframe", "object", "embed", "img", "base", "form"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        if name in ("src", "href", "xlink:href", "action", "srcset"):
            assert value.startswith("#"), (tag, name, value)
        if "url(" in value:
            assert re.fullmatch(r"(?:[^()]|url\(#[\w-]+\))*", value), value
    style = re.search(r"<style>(.*?)</style>", render(made.report()), re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]
    assert set(re.findall(r"https?://[^\"'\s<]+", render(made.report()))) <= {"http://www.w3.org/1999/xlink"}  # a name only


HOSTILE = "</style><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>{{ 7 * 7 }}"


def test_hostile_names_are_text() -> None:
    base = made.certificate()
    evidence = replace(base.evidence[0], summary=HOSTILE, uncovered=HOSTILE, command=HOSTILE)
    measured = replace(made.MEASUREMENT, unavailable={HOSTILE: HOSTILE})
    certificate = replace(
        base,
        task=replace(base.task, name=HOSTILE),
        machine=replace(base.machine, cpu=HOSTILE),
        schedule=HOSTILE,
        evidence=(evidence,),
        measurements=(measured,),
        replay=HOSTILE,
    )
    steps = (replace(made.STEPS[0], name=HOSTILE, work=HOSTILE, detail=HOSTILE),)
    page = Page(render(made.report(certificate=certificate, steps=steps, source=HOSTILE, notices=(HOSTILE,))))
    assert not {"script", "img"} & set(page.tags)
    assert page.text.count(HOSTILE) >= 10
    assert "{{ 7 * 7 }}" in page.text


@pytest.mark.parametrize(
    "changes",
    [
        {"progress": ()},
        {"progress": (made.PROGRESS[2],)},
        {"baseline_screen_ns": None},
        {"notices": ()},
        {"search_end": "budget spent"},
        {"steps": (made.STEPS[0],)},
        {"source": ""},
        {"certificate": made.certificate(roofline=None)},
        {"certificate": made.certificate(cases=())},
        {"certificate": made.certificate(evidence=(), schedule="", files={})},
        {"certificate": made.certificate(generated_share=0.93)},
        {"certificate": made.certificate(measurements=(made.MEASUREMENT, replace(made.MEASUREMENT, allocator="default")))},
        {"certificate": made.certificate(roofline=Roofline(0, 0.0, 40.0, 150.0, 50.0, "memory", 0.5))},
        {"certificate": made.certificate(roofline=Roofline(1 << 10, 1e12, 40.0, 150.0, 50.0, "compute", 0.5))},
    ],
)  # fmt: skip
def test_missing_parts(changes: dict[str, object]) -> None:
    text = Page(render(made.report(**changes))).text
    assert "1.60×" in text
    assert "None" not in text
    assert "nan" not in text.split()


def test_a_claim_that_is_no_win_says_so() -> None:
    certificate = made.certificate(claim=Claim("eager", Interval(1.01, 0.97, 1.05), 1e6, 1.01e6))
    assert "no win" in Page(render(made.report(certificate=certificate))).text


def test_shares_are_a_column_only_where_they_were_measured() -> None:
    assert "share of time" not in render(made.report())
    measured = tuple(replace(step, share=0.5) for step in made.STEPS)
    html = render(made.report(steps=measured))
    assert "share of time" in html
    assert "50%" in html


def test_the_same_data_give_the_same_page() -> None:
    assert render(made.report()) == render(made.report())


def test_ids_are_unique_and_references_are_to_be_found() -> None:
    page = Page(render(made.report()))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    used = {value[1:] for _, name, value in page.attributes if name in ("xlink:href", "href")}
    used |= set(re.findall(r"url\(#([^)]+)\)", " ".join(value for _, _, value in page.attributes)))
    assert used <= set(ids)


def test_pictures_follow_the_page_and_are_described() -> None:
    for svg in (
        progress_figure(made.PROGRESS, 2.3e6),
        roofline_figure(Roofline(1 << 20, 1e6, 40.0, 150.0, 50.0, "memory", 0.5), (("this kernel", 1e3), ("<eager>", 2e3))),
    ):
        assert "var(--accent)" in svg
        assert not re.search(r"#0[1-6]0[1-6]0[1-6]", svg)
        assert 'role="img"' in svg
        assert "<eager>" not in svg


@pytest.mark.parametrize(
    ("ns", "words"),
    [(12.3, "12.3 ns"), (999.7, "1 µs"), (1234.0, "1.23 µs"), (45.6e6, "45.6 ms"), (2e9, "2 s"), (1.5e9, "1.50 s")],
)
def test_durations(ns: float, words: str) -> None:
    assert duration(ns) == words


def test_highlighting_keeps_the_text_and_the_lines() -> None:
    lines = highlight(made.SOURCE)
    assert len(lines) == made.SOURCE.count("\n")
    for line, source in zip(lines, made.SOURCE.splitlines(), strict=True):
        assert Page(line).words == [] or "".join(Page(line).words) == source
        assert line.count("<span") == line.count("</span>")
    assert '<span class="c">// a step</span>' in lines[0]
    assert '<span class="k">void</span>' in lines[1]
    assert '<span class="n">0x1p-3f</span>' in lines[2]
    assert '<span class="c"> lines */</span>' in lines[3]


def test_importing_the_report_draws_nothing() -> None:
    code = "import sys, kernelwright.report; print([m for m in ('matplotlib', 'jinja2', 'torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [400, 1200])
def test_a_browser_opens_it_without_complaint(tmp_path: Path, width: int) -> None:
    """The console says nothing (the page's own policy would say what it blocks), and nothing is wider than the window."""
    report = tmp_path / "report.html"
    report.write_text(render(made.report()), encoding="utf-8")
    probe = (
        f"<body><iframe id=f src=report.html style='width:{width}px;height:2000px;border:0'></iframe><script>f.onload = () => "
        "{ const d = f.contentDocument.documentElement; document.title = `w${d.scrollWidth} h${d.scrollHeight}`; }</script>"
    )
    frame = tmp_path / "frame.html"
    frame.write_text(probe, encoding="utf-8")
    assert BROWSER is not None
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--allow-file-access-from-files",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=5000", "--dump-dom", frame.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert "CONSOLE" not in done.stderr, done.stderr
    size = re.search(r"<title>w(\d+) h(\d+)</title>", done.stdout)
    assert size is not None, done.stdout
    assert width - 20 <= int(size[1]) <= width  # a scroll bar's width less
    assert int(size[2]) > 1000
