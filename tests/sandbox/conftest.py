"""One zygote a kind of isolation, shared by the tests of this folder: each takes seconds to load torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.sandbox.isolation import Isolation, Mounts, Strength, detect, mapped_user, without_bubblewrap
from kernelwright.sandbox.limits import Limits
from kernelwright.sandbox.zygote import Zygote

HERE = Path(__file__).parent
HANDLERS = "misbehaving_worker"


def isolations() -> list[Isolation]:
    """Every kind that this machine has."""
    found = {isolation.bwrap: isolation for isolation in (detect(), mapped_user(detect()), without_bubblewrap())}
    return [isolation for isolation in found.values() if isolation.strength is not Strength.NONE]


def name_of(isolation: Isolation) -> str:
    return isolation.strength.value + ("-mapped" if "--unshare-user" in isolation.bwrap else "")


@pytest.fixture(scope="session", params=isolations(), ids=name_of)
def zygote(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """A zygote that sees the folder `shared` of the host to read and `own` to write."""
    base = tmp_path_factory.mktemp("host")
    base.chmod(0o755)
    for folder in ("shared", "own", "hidden"):
        (base / folder).mkdir()
        (base / folder / "file.txt").write_text(folder)
    mounts = Mounts(read_only=(base / "shared",), writable=(base / "own",))
    with Zygote(request.param, mounts, Limits(memory_bytes=1 << 30), threads=2, search=(HERE,)) as one:
        one.test_folder = base  # type: ignore[attr-defined]
        yield one
