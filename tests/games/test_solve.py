"""Values of games, against programs in every state, all policies, and rational arithmetic."""

import itertools
import pickle

import numpy as np
import pytest

from onlinecal.core.errors import InvalidParameter, UnknownName
from onlinecal.core.joint import JointDistribution
from onlinecal.games import solve, value_bracket
from onlinecal.games import solving as solver
from onlinecal.games.rational import rational_value
from onlinecal.games.states import Biases, Counts, how_many, numbered, place, words_between
from onlinecal.games.totals import of_biases, totals
from onlinecal.measures import MEASURES
from tests.games.recursion import (
    dual_value,
    some_counts,
    total,
    value_by_programs,
    value_of_deterministic_policies,
)

PROGRAM = 1e-7  # of a linear program


#: measures with games that depend on the biases alone
OF_BIASES = tuple(name for name, measure in MEASURES.items() if of_biases(measure) and not measure.example)


@pytest.mark.parametrize("measure", ["ece", "smooth_ce", "kernel_ce", "cutoff_ce", "step_ce", "cdl", "v_cdl",
                                     "u_calibration", "subsampled_smooth_ce"])  # fmt: skip
@pytest.mark.parametrize(("m", "horizon"), [(1, 4), (2, 3), (3, 2)])
def test_as_a_program_in_every_state(measure, m, horizon):
    expected = value_by_programs(measure, m, horizon)
    assert solve(m, horizon, measure).value == pytest.approx(expected, abs=PROGRAM)


@pytest.mark.slow
def test_a_measure_that_is_a_bracket():
    found = solve(2, 2, "distance_lower")
    assert found.value == pytest.approx(value_by_programs("distance_lower", 2, 2), abs=PROGRAM)
    assert 1e-12 < found.error < 1e-6


def test_totals_of_biases_are_those_of_the_measure(seed):
    """Of every measure of which games are said to depend on the biases alone."""
    rng = np.random.default_rng(seed)
    assert {"ece", "smooth_ce", "kernel_ce", "cutoff_ce", "step_ce"} <= set(OF_BIASES)
    for measure in OF_BIASES:
        for m in (2, 5):
            counts = some_counts(rng, m, 7)
            biases = counts[:, 1] - counts[:, 0] * np.arange(m + 1) / m
            found, error = totals(MEASURES[measure], np.arange(m + 1) / m, biases[None])
            assert abs(found[0] - _total(measure, m, counts)) <= error + 1e-11, (measure, counts)


def test_totals_of_a_bracket_hold_both_of_its_ends():
    """As nearly as its width: the bracket is wider than what rounding adds."""
    grid, counts, measure = np.arange(3) / 2, np.array([[3, 1], [2, 2], [4, 3]]), MEASURES["distance_lower"]
    value = measure.function(JointDistribution.from_counts(grid, *counts.T))
    (found,), error = totals(measure, grid, counts[None])
    assert 9 * value.lower >= found - error
    assert 9 * value.upper <= found + error
    assert error == pytest.approx(9 * value.width / 2, rel=1e-2)


@pytest.mark.parametrize("measure", ["ece", "cdl"])
def test_moving_at_once_is_worth_what_seeing_the_law_is(measure):
    expected = value_by_programs(measure, 2, 3, dual_value)
    law, at_once = solve(2, 3, measure), solve(2, 3, measure, "history")
    assert at_once.value == law.value == pytest.approx(expected, abs=PROGRAM)


@pytest.mark.parametrize(("m", "horizon"), [(1, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize("measure", ["ece", "step_ce", "smooth_ce", "cdl"])
def test_against_who_sees_the_draw_laws_are_of_no_use(measure, m, horizon):
    # A nature that sees the law foresees deterministic policies; a law is no better than its best point.
    expected = value_of_deterministic_policies(measure, m, horizon)
    assert solve(m, horizon, measure, "draw").value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("sight", ["law", "draw"])
@pytest.mark.parametrize(
    ("m", "horizon", "measure"),
    [(1, 6, "ece"), (2, 8, "ece"), (3, 6, "ece"), (4, 6, "ece"), (5, 5, "ece"), (2, 6, "cutoff_ce"), (3, 4, "step_ce")],
)  # fmt: skip
def test_within_the_error_of_the_rational_value(m, horizon, measure, sight):
    found = solve(m, horizon, measure, sight)
    low, high = found.bracket
    assert low <= rational_value(m, horizon, measure, sight) <= high
    assert found.error < 1e-9


@pytest.mark.parametrize(
    ("measure", "horizon", "ends", "largest"),
    [
        # E_i is counted when it comes. Of the others the totals at the end err by 1e-12 of the largest, or of T.
        ("ece", 1, 0.0, 1.0), ("ece", 2, 0.0, 3.0), ("smooth_ce", 1, 1.0, 1.0), ("smooth_ce", 2, 2.0, 3.0),
        ("cdl", 1, 1.0, 1.0), ("cdl", 2, 2.0, 4.0), ("brier", 1, 1.0, 1.0), ("brier", 2, 2.0, 4.0),
    ],
)  # fmt: skip
def test_the_error_is_that_of_the_ends_and_twelve_units_of_the_largest_value_a_stage(
    measure, horizon, ends, largest
):
    """Of games on 0 and 1 of a nature that sees the draw, where laws have no gap; `largest` is summed over stages."""
    error = solve(1, horizon, measure, "draw").error
    assert error == pytest.approx(1e-12 * ends + 12 * largest * 2.0**-53, rel=1e-6, abs=0.0)


def test_known_values():
    two = [0.5, 0.75, 29 / 28, 1.301020, 1.564877, 1.824800, 2.082777, 2.339123, 2.594303, 2.848570, 3.102126]
    for m, known in (
        (2, two),
        (4, [0.5, 0.75, 1.035714, 1.277014, 1.476271, 1.660286]),
        (1, [0.5, 1.0, 1.5]),
    ):
        solution = solve(m, len(known))
        assert solution.values == pytest.approx(known, abs=1e-6)
        assert solve(m, 2).value == pytest.approx(solution.values[1], abs=1e-13)


@pytest.mark.parametrize(("m", "horizon"), [(2, 9), (3, 6), (4, 5)])
def test_letters_for_several_biases_lose_nothing(monkeypatch, m, horizon):
    merged = solve(m, horizon)
    for alphabet in (Counts(m, horizon), Biases(m, horizon, separate=False)):
        monkeypatch.setattr(solver, "alphabet_for", lambda *_, alphabet=alphabet: alphabet)
        plain = solve(m, horizon)
        assert plain.states > merged.states
        assert plain.value == pytest.approx(merged.value, abs=1e-11)
        assert solver.layer_sizes(alphabet)[1].max() == plain.states


@pytest.mark.parametrize(
    "alphabet", [Biases(3, 6, True), Biases(2, 6, False), Biases(4, 6, True, 5), Counts(2, 6)], ids=repr
)
def test_states_are_what_rounds_lead_to_each_at_a_place_of_its_own(alphabet):
    reached = {(0,) * (alphabet.m + 1)}
    for played in range(alphabet.horizon + 1):
        left = alphabet.horizon - played
        its = numbered(alphabet, left)
        rows = words_between(0, its.number, its)
        assert [place(row, its) for row in rows] == list(range(its.number))
        assert its.number == how_many(alphabet, left)
        codes = [
            alphabet.letters(point, left)[1][row] for point, row in zip(alphabet.points, rows.T, strict=True)
        ]
        expected = {
            tuple(int(alphabet.at(point, left, state[point])) for point in alphabet.points)
            for state in reached
        }
        assert {*map(tuple, rows.tolist())} == expected
        assert len({*zip(*(code.tolist() for code in codes), strict=True)}) == its.number
        reached = {
            (*state[:i], int(alphabet.after(i, state[i], y)), *state[i + 1 :])
            for state in reached for i in range(alphabet.m + 1) for y in (0, 1)
        }  # fmt: skip


def test_merging_more_would(monkeypatch):
    right = solve(2, 9).value
    monkeypatch.setattr(
        Biases, "_settled", lambda self, point, left: (-left * (self.m - point), min(2, left * point))
    )
    assert abs(solve(2, 9).value - right) > 1e-3


@pytest.mark.parametrize("measure", ["ece", "smooth_ce", "cdl"])
def test_symmetry_is_used_only_where_it_holds(monkeypatch, measure):
    with_it = solve(3, 6, measure).value
    monkeypatch.setattr(solver, "SYMMETRIC", frozenset())
    assert solve(3, 6, measure).value == pytest.approx(with_it, abs=1e-12)
    # The bias below a threshold is another than that above it.
    right = solve(2, 5, "step_ce").value
    monkeypatch.setattr(solver, "SYMMETRIC", frozenset({"step_ce"}))
    assert abs(solve(2, 5, "step_ce").value - right) > 1e-3


def test_threads_and_kept_layers_change_nothing(monkeypatch):
    monkeypatch.setattr(solver, "CHUNK", 50)
    one, many = solve(3, 14, threads=1), solve(3, 14, threads=3, keep=True)
    assert (one.value, one.error, one.stages) == (many.value, many.error, many.stages)
    rng = np.random.default_rng(0)
    for _ in range(50):
        left = int(rng.integers(1, 15))
        counts = some_counts(rng, 3, 14 - left)
        a, b = one.at(counts, left), many.at(counts, left)
        assert a.value == b.value
        assert (a.after == b.after).all()


@pytest.mark.parametrize("measure", ["ece", "smooth_ce", "cdl"])
@pytest.mark.parametrize("m", [2, 3])
def test_both_sides_hold_the_value_in_every_state(measure, m, seed):
    horizon = 7
    solution, rng = solve(m, horizon, measure), np.random.default_rng(seed)
    for _ in range(60):
        left = int(rng.integers(1, horizon + 1))
        counts = some_counts(rng, m, horizon - left)
        state = solution.at(counts, left)
        law = np.zeros(m + 1)
        law[np.rint(m * np.array(state.forecasts)).astype(int)] = state.weights
        assert len(state.forecasts) <= 2
        assert sum(state.weights) == pytest.approx(1.0, abs=1e-15)
        # Duality: the law costs no more than the value, nature's q gets no less from any point.
        assert (law @ state.after).max() <= state.value + 1e-10
        assert (state.after @ [1 - state.q, state.q]).min() >= state.value - 1e-10
        for i, y in itertools.product(range(m + 1), (0, 1)):
            after = counts.copy()
            after[i] += (1, y)
            value = _total(measure, m, after) if left == 1 else solution.at(after, left - 1).value
            assert state.after[i, y] == pytest.approx(value, abs=1e-10)


def _total(measure, m, counts):
    return total(measure, m, tuple(map(tuple, counts.tolist())))


def test_states_are_given_as_biases_or_counts():
    solution, other = solve(2, 4), solve(2, 4, "cdl")
    counts = np.array([[0, 0], [2, 2], [0, 0]])
    assert solution.at(counts, 2).value == solution.at([0, 2, 0], 2).value
    impossible = [
        ([[0, 0], [2, 1], [0, 0]], 4),
        ([[0, 0], [1, 1], [0, 0]], 2),
        ([[3, 0], [-1, 0], [0, 0]], 2),
    ]
    for game, ends, left, said in (
        (solution, [0, 3, 0], 2, "what 2 rounds can come to"), (other, counts, 1, "what 3 rounds can come to"),
        (solution, [0, 1], 2, "3 whole biases"), (solution, [0.0, 1.0, 0.0], 2, "3 whole"),
        (solution, [0, 0, 0], 5, "left = 5"), (other, [0, 0, 0], 4, "3 whole rounds and outcomes"),
        *((game, ends, left, f"what {4 - left} rounds") for game in (solution, other) for ends, left in impossible),
    ):  # fmt: skip
        with pytest.raises(InvalidParameter, match=said):
            game.at(ends, left)
    kept = pickle.loads(pickle.dumps(other))
    assert kept == other != solve(2, 3, "cdl")
    assert kept.at(counts, 2) == other.at(counts, 2)


def test_layers_without_room_are_not_kept(monkeypatch):
    monkeypatch.setattr(solver, "KEPT", 1.0)
    assert solve(2, 4, keep=True).at([0, 2, 0], 2).left == 2
    with pytest.raises(InvalidParameter, match="left = 1 was not kept; expected one of the first rounds"):
        solve(2, 4).at([0, 2, 0], 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"m": 0}, "m = 0"), ({"horizon": 0}, "horizon = 0"), ({"m": 2.0}, "m = 2.0"), ({"threads": 0}, "threads"),
        ({"m": 40, "horizon": 100_001}, r"from 1 to 10\^5$"), ({"threads": 0.5}, "threads"), ({"sight": None}, "sight"),
        ({"measure": "log_loss"}, "infinite"), ({"measure": "random_interval_ce"}, "epsilon"),
        ({"measure": "smooth_ece"}, "within"), ({"measure": "ecee"}, "did you mean"), ({"sight": "nothing"}, "one of"),
        *(({"measure": wrong}, "unknown measure") for wrong in ({"name": "kernel_ce", "scale": 2}, ["ece"], None)),
    ],
)  # fmt: skip
def test_bad_input(options, said):
    with pytest.raises((InvalidParameter, UnknownName), match=said):
        solve(**{"m": 2, "horizon": 3} | options)


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize(("m", "horizon"), [(2, 20), (3, 50), (6, 40)])
def test_tables_of_letters_have_about_the_bytes_that_are_said(m, horizon, separate):
    """Within a factor of four: they grow as m² T, and are little beside the states."""
    alphabet, most = Biases(m, horizon, separate), 0
    for left in range(horizon + 1):
        for point in range(m + 1):
            alphabet.letters(point, left)
        most = max(most, sum(each.nbytes for kept in alphabet._kept.values() for each in kept))
    assert 0.25 < most / alphabet.tables() < 4.0


@pytest.mark.parametrize(("keep", "layers"), [(False, 2.0), (True, 2.0 * 20**0.5 + 2.0)])
def test_two_layers_need_room_or_two_for_each_step_of_the_root(keep, layers, monkeypatch):
    alphabet = Biases(2, 20, True)
    needed = solver.KEPT + alphabet.tables() + 8.0 * layers * solver.layer_sizes(alphabet)[1].max()
    monkeypatch.setattr(solver, "memory_there", lambda: needed * (1.0 + 1e-9))
    solve(2, 20, keep=keep)
    monkeypatch.setattr(solver, "memory_there", lambda: needed * (1.0 - 1e-9))
    with pytest.raises(InvalidParameter, match=r"ece needs [\d.]+ GiB, and .* the largest T that fits is 19"):
        solve(2, 20, keep=keep)
    with pytest.raises(InvalidParameter, match="ece needs more than 0"):
        solve(2, 1000, keep=keep)  # that of 60 rounds is too large


@pytest.mark.parametrize(("free", "there"), [(np.inf, 8e9), (5.0, 5.0)])
def test_of_a_machine_that_does_not_say_how_much_memory_is_free_it_is_8_gb(free, there, monkeypatch):
    monkeypatch.setattr(solver, "free_memory", lambda: free)
    assert solver.memory_there() == there


def test_sizes_are_told_in_gib():
    sizes = [solver.size_text(number * 2.0**30) for number in (0.04, 1234.56, 999_999.0, 1e6)]
    assert sizes == ["0.0 GiB", "1,234.6 GiB", "999,999.0 GiB", "1.0e+06 GiB"]


def test_too_large_games_are_refused_with_the_largest_that_fits(monkeypatch):
    """Also of bounds. States are counted no longer than it takes to see that there is no room."""
    monkeypatch.setattr(solver, "memory_there", lambda: solver.KEPT + 1e5)
    for value in (lambda t: solve(4, t), lambda t: value_bracket(3, t, 8.0, "smooth_ce", progress=False)):
        with pytest.raises(InvalidParameter, match="largest T that fits is") as e:
            value(300)
        fits = int(str(e.value).rsplit(" ", 1)[1])
        value(fits)
        with pytest.raises(InvalidParameter, match=f"largest T that fits is {fits}"):
            value(fits + 1)
    monkeypatch.setattr(solver, "memory_there", lambda: 1e9)
    for m, horizon, measure in ((10**6, 3, "ece"), (8, 100_000, "ece"), (40, 100, "cdl")):
        with pytest.raises(InvalidParameter, match=r"this grid|needs more than|the largest T"):
            solve(m, horizon, measure)
