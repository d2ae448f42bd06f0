"""The main job from end to end: three small examples through the command line, and what may interrupt a run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_runs import environment, keep_given_machine, kernelwright, smaller, started

EXAMPLES = {
    "softmax": {"randn(4096, 2048)": "randn(256, 512)"},
    "mlp": {"randn(256, 784)": "randn(64, 96)", "[784, 1024, 10]": "[96, 128, 10]"},
    "conv_bn_relu": {"randn(8, 64, 56, 56)": "randn(2, 16, 20, 20)", "[64, 64]": "[16, 16]"},
}
ENDLESS = ("--budget", "600", "--eager-only")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh(tmp_path_factory)


def fresh(factory: pytest.TempPathFactory) -> Path:
    folder = factory.mktemp("home")
    keep_given_machine(folder)
    return folder


@pytest.fixture(scope="module", params=EXAMPLES)
def ran(request: pytest.FixtureRequest, home: Path) -> tuple[str, Path, dict[str, Any]]:
    """An example's name, its home and what `--json` said."""
    name = request.param
    spec = smaller(name, home, EXAMPLES[name])
    options = ("--budget", "200", "--evaluations", "4", "--eager-only", "--json")
    done = kernelwright(home, "optimize", str(spec), *options)
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""  # --json: nothing but the document
    said: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if said["better"] else 1)
    return name, home, said


def test_the_outcome_says_what_was_found(ran: tuple[str, Path, dict[str, Any]]) -> None:
    name, home, said = ran
    assert said["task"] == name
    assert said["run"].startswith(name)
    assert said["evaluated"] == 4
    measured = said["measurement"]
    assert measured is not None, said["reason"]
    assert {"eager", "eager_default_allocator"} < set(measured["contestants"])
    assert all(ns > 0 for ns in measured["median_ns"].values())
    if not said["better"]:
        assert said["reason"]
        return
    folder = home / said["folder"]
    assert {p.name for p in folder.iterdir()} >= {"module.py", "kernel.cpp", "certificate.json", "report.html", "reference.py"}
    claim = said["certificate"]["claim"]
    assert claim["baseline"] == "eager"
    assert claim["speedup"]["low"] > 1.0


def test_the_archive_has_the_run(ran: tuple[str, Path, dict[str, Any]]) -> None:
    _, home, said = ran
    listed = json.loads(kernelwright(home, "runs", "--json").stdout)
    found = next(r for r in listed if r["id"] == said["run"])
    assert found["status"] == ("done" if said["better"] else "nothing_better")
    assert found["evaluations"] >= said["evaluated"]
    lines = kernelwright(home, "show", said["run"], "--json").stdout.splitlines()
    assert len(lines) > said["evaluated"]
    assert all(isinstance(json.loads(line), dict) for line in lines)
    shown = kernelwright(home, "show", said["run"]).stdout
    assert said["run"] in shown
    assert "correct" in shown
    assert said["run"] in kernelwright(home, "runs").stdout


def test_the_last_run_has_a_name(ran: tuple[str, Path, dict[str, Any]]) -> None:
    _, home, _ = ran
    newest = json.loads(kernelwright(home, "runs", "--json").stdout)[0]["id"]
    assert newest in kernelwright(home, "show", "last").stdout
    assert kernelwright(home, "show", "no-such-run").returncode == 2


def test_the_result_works_without_kernelwright(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """The drop-in in a process that can't import Kernelwright gives the reference's answers."""
    _, home, said = ran
    if not said["better"]:
        pytest.skip("the baseline was kept on this machine")
    code = """
import sys
sys.modules["kernelwright"] = None  # any import of it fails
sys.path.insert(0, sys.argv[1])
import torch, module, reference
torch.manual_seed(0)
theirs = reference.Model(*reference.get_init_inputs()).eval()
ours = module.Model(*reference.get_init_inputs()).eval()
ours.load_state_dict(theirs.state_dict())
inputs = reference.get_inputs()
with torch.no_grad():
    torch.testing.assert_close(ours(*inputs), theirs(*inputs), rtol=1e-4, atol=1e-5)
"""
    command = [sys.executable, "-W", "error::UserWarning", "-c", code, str(home / said["folder"])]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def proposals(home: Path, run: str) -> list[str]:
    """The candidates of a run in the order in which they were evaluated."""
    lines = map(json.loads, kernelwright(home, "show", run, "--json").stdout.splitlines())
    return [line["evaluation"]["candidate"] for line in lines if "evaluation" in line]


def test_a_seed_gives_the_same_proposals(tmp_path_factory: pytest.TempPathFactory) -> None:
    """In two fresh homes. The later ones hang on measured times, so the structural alternatives alone are compared."""
    orders = []
    for _ in range(2):
        home = fresh(tmp_path_factory)
        spec = smaller("softmax", home, EXAMPLES["softmax"])
        done = kernelwright(home, "optimize", str(spec), "--budget", "200", "--evaluations", "6", "--eager-only", "--json")
        orders.append(proposals(home, json.loads(done.stdout)["run"]))
    assert orders[0][:6] == orders[1][:6]
    assert min(map(len, orders)) >= 6


def wait_for(process: subprocess.Popen[str], words: str) -> None:
    """Read progress until a line holds `words`."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"ended without {words!r}: {''.join(seen)}")


def test_an_interrupted_search_keeps_the_best_so_far_and_resumes(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = fresh(tmp_path_factory)
    spec = str(smaller("softmax", home, EXAMPLES["softmax"]))
    with started(home, "optimize", spec, *ENDLESS) as process:
        wait_for(process, "best so far")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=200)
    assert process.returncode in (0, 1), stderr
    assert "the best so far goes to the finals" in stderr
    assert "finals" in stderr
    assert "softmax" in stdout
    assert "Traceback" not in stderr
    first = json.loads(kernelwright(home, "runs", "--json").stdout)[0]
    known = set(proposals(home, first["id"]))

    again = kernelwright(home, "optimize", spec, *ENDLESS, "--evaluations", "1", "--resume", "--json")
    assert again.returncode in (0, 1), again.stderr
    said = json.loads(again.stdout)
    seen = proposals(home, said["run"])
    assert known < set(seen)  # what was known came again at no cost, and one more was paid for
    assert said["evaluated"] > 1


def test_a_second_interrupt_ends_at_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = fresh(tmp_path_factory)
    spec = str(smaller("softmax", home, EXAMPLES["softmax"]))
    with started(home, "optimize", spec, *ENDLESS) as process:
        wait_for(process, "best so far")
        process.send_signal(signal.SIGINT)
        wait_for(process, "finals")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert json.loads(kernelwright(home, "runs", "--json").stdout)[0]["status"] == "interrupted"


def test_two_runs_share_an_archive_and_one_may_be_killed(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = fresh(tmp_path_factory)
    softmax = str(smaller("softmax", home, EXAMPLES["softmax"]))
    mlp = str(smaller("mlp", home, EXAMPLES["mlp"]))
    with started(home, "optimize", mlp, *ENDLESS) as killed:
        wait_for(killed, "search")
        with started(home, "optimize", softmax, *ENDLESS, "--evaluations", "3", "--json") as other:
            wait_for(killed, "best so far")
            killed.kill()
            stdout, stderr = other.communicate(timeout=200)
    assert other.returncode in (0, 1), stderr
    assert json.loads(stdout)["evaluated"] == 3
    listed = {r["task_name"]: r for r in json.loads(kernelwright(home, "runs", "--json").stdout)}
    assert listed["mlp"]["status"] is None
    assert listed["mlp"]["evaluations"] >= 1
    assert "unfinished" in kernelwright(home, "runs").stdout
    assert listed["softmax"]["status"] in ("done", "nothing_better")


def test_quiet_says_only_the_result(home: Path) -> None:
    spec = smaller("softmax", home, EXAMPLES["softmax"])
    done = kernelwright(home, "optimize", str(spec), "--budget", "8", "--evaluations", "1", "--eager-only", "--quiet")
    assert done.returncode in (0, 1)
    assert done.stderr == ""
    assert 1 <= len(done.stdout.splitlines()) <= 2
