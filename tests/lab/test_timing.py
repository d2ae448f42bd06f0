"""The statistics of timing, on made-up samples."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.lab.timing import LEAST_FLOOR, Claim, claim, interval, median, noise
from kernelwright.records import Interval


def rounds(random: np.random.Generator, n: int, scatter: float, *scales: float) -> list[list[float]]:
    """Contestants that share each round's slowdown (drifting) and scatter on their own."""
    drift = np.exp(np.cumsum(random.normal(0, 0.02, n)))
    return [list(1e6 * s * drift * np.exp(random.normal(0, scatter, n))) for s in scales]


def test_the_ratio_survives_drift_that_both_share() -> None:
    base, fast = rounds(np.random.default_rng(1), 40, 0.01, 1.5, 1.0)
    got = interval(base, fast, seed=0)
    assert got.low < 1.5 < got.high or abs(got.estimate - 1.5) < 0.02
    assert got.high - got.low < 0.05


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(2)
    hits = sum(
        got.low <= 1.2 <= got.high
        for got in (interval(*rounds(random, 30, 0.05, 1.2, 1.0), seed=i, resamples=400) for i in range(200))
    )
    assert hits >= 172


def test_one_spoiled_round_changes_little() -> None:
    base, fast = rounds(np.random.default_rng(3), 30, 0.01, 1.3, 1.0)
    base[7] *= 50
    assert abs(interval(base, fast, 0).estimate - 1.3) < 0.03


def test_the_same_seed_gives_the_same_interval() -> None:
    base, fast = rounds(np.random.default_rng(4), 20, 0.05, 1.3, 1.0)
    assert interval(base, fast, 5) == interval(base, fast, 5)


@pytest.mark.parametrize("scatter", [0.01, 0.1, 0.3])
def test_a_kernel_against_itself_is_never_a_win(scatter: float) -> None:
    random = np.random.default_rng(5)
    for trial in range(100):
        base, same, twin = rounds(random, 25, scatter, 1.0, 1.0, 1.0)
        floor = noise(same, twin, trial).floor
        assert claim(interval(base, same, trial, 500), floor, 25) is not Claim.FASTER


def test_five_per_cent_is_found_on_a_quiet_machine() -> None:
    random = np.random.default_rng(6)
    for trial in range(20):
        base, fast, twin = rounds(random, 40, 0.02, 1.05, 1.0, 1.0)
        assert claim(interval(base, fast, trial), noise(fast, twin, trial).floor, 40) is Claim.FASTER


def test_noise_hides_a_small_win_and_too_much_noise_is_said() -> None:
    random = np.random.default_rng(7)
    base, fast, twin = rounds(random, 15, 0.6, 1.05, 1.0, 1.0)
    assert claim(interval(base, fast, 0), noise(fast, twin, 0).floor, 15) is Claim.TOO_NOISY


def test_slower_and_same_and_too_few() -> None:
    assert claim(Interval(0.8, 0.78, 0.82), 0.02, 30) is Claim.SLOWER
    assert claim(Interval(1.0, 0.99, 1.01), 0.02, 30) is Claim.SAME
    assert claim(Interval(2.0, 1.9, 2.1), 0.02, 3) is Claim.TOO_NOISY
    assert claim(Interval(2.0, 1.9, 2.1), 0.9, 30) is Claim.TOO_NOISY


def test_a_perfectly_quiet_machine_still_has_a_floor() -> None:
    assert noise([1.0] * 20, [1.0] * 20, 0).floor == LEAST_FLOOR


def test_samples_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="paired"):
        interval([1.0, 2.0], [1.0], 0)
    with pytest.raises(ValueError, match="positive"):
        interval([1.0, 0.0], [1.0, 1.0], 0)
    assert median([3.0, 1.0, 2.0, 10.0]) == 2.5
