"""The folder as it is written: whole or not at all, hashed, an older one kept; certificates found out when a byte changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import packaged
import pytest

from kernelwright.errors import UserError
from kernelwright.records import Candidate, Interval, LibraryStep, Manifest
from kernelwright.result.certificate import FILE, claim_of, digest_of, read_certificate, verify_files
from kernelwright.result.folder import Product, write_result


def test_what_is_written(tmp_path: Path) -> None:
    result = packaged.write_affine(tmp_path / "results" / "affine")
    names = {path.name for path in result.path.iterdir()}
    assert names == {"module.py", "kernel.cpp", "reference.py", "manifest.json", FILE, "report.html"}
    assert verify_files(result.path) == []
    certificate = read_certificate(result.path)
    assert certificate == result.certificate
    assert set(certificate.files) == names - {FILE, "report.html"}
    assert certificate.digest in result.report.read_text()
    text = result.module.read_text()
    assert "1.60x as fast as compile, the best of eager, compile\n(95% interval 1.50 to 1.70), contract strict" in text
    assert text.index("class Affine(reference.Affine)") < 4000  # what a person wants to read comes first
    assert [path.name for path in result.path.parent.iterdir()] == ["affine"]


def test_own_modules_and_constants(tmp_path: Path) -> None:
    result = packaged.write_difference(tmp_path / "difference")
    assert set(result.certificate.files) >= {"reference_imports/constants_of_mine.py", "constants.bin"}
    assert json.loads((result.path / "manifest.json").read_text())["constants"] == {"table": [0, 12]}
    (result.path / "reference_imports" / "constants_of_mine.py").write_text("TABLE = [0.0, 0.0, 0.0]\n")
    assert verify_files(result.path) == ["reference_imports/constants_of_mine.py is not the file that was measured"]


def test_own_modules_of_two_results_do_not_meet(tmp_path: Path) -> None:
    loaded = []
    for name, table in (("one", "[1.0, 1.0, 1.0]"), ("two", "[2.0, 2.0, 2.0]")):
        (tmp_path / name).mkdir()
        result = packaged.write_difference(tmp_path / name / "difference", table=table)
        loaded.append(packaged.load(result))
    assert [module.reference.constants_of_mine.TABLE[0] for module in loaded] == [1.0, 2.0]


def test_an_older_result_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "affine"
    first = packaged.write_affine(folder)
    assert first.kept is None
    second = packaged.write_affine(folder, kernel=packaged.AFFINE + "// second\n")
    third = packaged.write_affine(folder)
    assert (second.kept, third.kept) == (tmp_path / "affine.1", tmp_path / "affine.2")
    assert verify_files(tmp_path / "affine.1") == verify_files(tmp_path / "affine.2") == verify_files(folder) == []
    assert "second" in (tmp_path / "affine.2" / "kernel.cpp").read_text()


def test_nothing_is_left_where_the_report_fails(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "affine"
    packaged.write_affine(folder)
    made = packaged.task(tmp_path / "affine_reference.py", "Affine")
    candidate = Candidate("cpu", packaged.AFFINE, packaged.AFFINE_MANIFEST)

    def render(_: object) -> str:
        raise RuntimeError("no picture")

    before = sorted(folder.parent.iterdir())
    with pytest.raises(RuntimeError, match="no picture"):
        write_result(folder, Product(made, candidate, {}), packaged.draft(made, candidate), render)
    assert sorted(folder.parent.iterdir()) == before
    assert verify_files(folder) == []


def test_other_peoples_folders_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    with pytest.raises(UserError, match="is not a result of Kernelwright"):
        packaged.write_affine(tmp_path / "thesis")
    (tmp_path / "empty").mkdir()
    assert packaged.write_affine(tmp_path / "empty").kept is None
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        packaged.write_affine(tmp_path / "file" / "affine", source_folder=tmp_path)


def test_library_calls_alone_are_no_result(tmp_path: Path) -> None:
    made = packaged.task(tmp_path / "x.py", "Affine")
    manifest: Manifest = replace(packaged.AFFINE_MANIFEST, steps=(LibraryStep("aten.mm.default", "[]", ("y",)),))
    candidate = Candidate("cpu", "", manifest)
    with pytest.raises(ValueError, match="library calls alone"):
        write_result(tmp_path / "out", Product(made, candidate, {}), packaged.draft(made, candidate), lambda c: "")


def test_a_changed_byte_in_the_samples_is_found(tmp_path: Path) -> None:
    folder = packaged.write_affine(tmp_path / "affine").path
    text = (folder / FILE).read_text()
    assert "210.0" in text
    (folder / FILE).write_text(text.replace("210.0", "310.0", 1))
    assert verify_files(folder) == [f"{FILE} was changed after it was issued: its digest does not fit its content"]
    (folder / FILE).write_text(text.replace("\n ", "\n   "))  # layout is not content
    assert verify_files(folder) == []
    (folder / "kernel.cpp").unlink()
    assert verify_files(folder) == ["kernel.cpp is missing"]


def test_certificates_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        read_certificate(tmp_path)
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(UserError, match="is not a certificate"):
        read_certificate(tmp_path)
    good = packaged.write_affine(tmp_path / "affine").path
    data = json.loads((good / FILE).read_text())
    (good / FILE).write_text(json.dumps({**data, "format": 99}))
    with pytest.raises(UserError, match="format 99"):
        read_certificate(good)


def test_the_claim_is_against_the_best_baseline(tmp_path: Path) -> None:
    claim = claim_of(packaged.MEASUREMENT)
    assert (claim.baseline, claim.median_ns, claim.baseline_ns) == ("compile", 110.0, 170.0)
    apart = {**packaged.MEASUREMENT.speedup, "eager_default_allocator": Interval(1.0, 0.9, 1.1)}
    assert claim_of(replace(packaged.MEASUREMENT, speedup=apart)).baseline == "compile"  # shown apart, never a base
    certificate = read_certificate(packaged.write_affine(tmp_path / "affine").path)
    assert digest_of(replace(certificate, files={})) != certificate.digest == digest_of(certificate)
