"""Published runs: every figure in them, and in the documents, is computed again from the stored samples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rig import analysis, frames, store
from rig.matrix import page, records
from rig.publish import MOST_BYTES
from rig.records import Metric
from rig.report import findings

ROOT = Path(__file__).resolve().parents[1]
STORED = (path.parent for path in (ROOT / "reports").glob("*/manifest.json"))
RUNS = sorted(path for path in STORED if not path.name.startswith("latest"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
QUOTE = re.compile(r"<!-- figures: (?P<run>[\w-]+) -->\n+(?P<lines>(?:>.*\n)+)")


def numbers(metric: Metric) -> list[float]:
    return [number for number in (metric.value, metric.ci_low, metric.ci_high) if number is not None]


def test_there_is_a_published_run() -> None:
    assert RUNS


@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name)
def test_every_figure_of_a_published_run_is_computed_again_from_its_samples(run: Path) -> None:
    stored, again = store.read_summary(run), analysis.summarise(frames.read(run))
    assert [m.key for m in stored.metrics] == [m.key for m in again.metrics]
    for old, new in zip(stored.metrics, again.metrics, strict=True):
        assert numbers(old) == pytest.approx(numbers(new), rel=1e-9), old.key
        assert (old.outcome, old.n_samples, old.n_launches) == (new.outcome, new.n_samples, new.n_launches)
    assert [(v.claim, v.outcome, v.statement) for v in stored.verdicts] == [
        (v.claim, v.outcome, v.statement) for v in again.verdicts
    ]


@pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name)
def test_a_published_report_tells_its_own_figures_and_the_run_is_small(run: Path) -> None:
    page = (run / store.REPORT).read_text(encoding="utf-8")
    for sentence in findings.headline(store.read_summary(run)):
        assert sentence.replace("'", "&#39;") in page
    assert sum(path.stat().st_size for path in run.iterdir()) <= MOST_BYTES


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_figures_quoted_in_a_document_are_those_of_the_run_they_name(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    quotes = list(QUOTE.finditer(text))
    assert len(quotes) == text.count("<!-- figures:"), "a marker without its quotation"
    for quote in quotes:
        said = " ".join(line.removeprefix(">").strip() for line in quote["lines"].splitlines())
        assert said == " ".join(headline(ROOT / "reports" / quote["run"]))


def headline(place: Path) -> list[str]:
    """What a published run, or a matrix, says at its top."""
    if not records.is_matrix(place):
        return findings.headline(store.read_summary(place))
    changes = store.read(place / records.CHANGES, records.Changes)
    return page.headline(store.read(place / records.MATRIX, records.Matrix), changes)


def test_the_readme_quotes_a_run() -> None:
    assert QUOTE.search(DOCUMENTS[0].read_text(encoding="utf-8"))
