"""Maps of recalibration: Venn–Abers by brute force, inverses, and files that give the same bytes."""

import hashlib
import json
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import onlinecal as oc
from onlinecal.core.errors import InvalidData, InvalidParameter, StoreError, UnknownName
from onlinecal.recalibration.files import apply_file
from onlinecal.recalibration.maps import FITS
from tests.command_line import onlinecal

samples = st.lists(st.tuples(st.integers(0, 8).map(lambda k: k / 8), st.booleans()), min_size=4, max_size=14)
every_method = pytest.mark.parametrize("method", FITS)


def log(seed, n=300):
    generator = np.random.default_rng(seed)
    p = generator.random(n)
    y = (generator.random(n) < p**2) * 1.0
    y[:2] = 0.0, 1.0
    return p, y


def isotonic(rows):
    """Level ↦ value, by the formula of maxima and minima of means."""
    levels = sorted({p for p, _ in rows})
    counts = [sum(p == level for p, _ in rows) for level in levels]
    ones = [sum(p == level and y for p, y in rows) for level in levels]

    def mean(a, b):
        return Fraction(sum(ones[a : b + 1]), sum(counts[a : b + 1]))

    return {
        level: max(min(mean(a, b) for b in range(i, len(levels))) for a in range(i + 1))
        for i, level in enumerate(levels)
    }


def fitted(rows, method="venn_abers"):
    return oc.fit_recalibration([p for p, _ in rows], [float(y) for _, y in rows], method)


@given(samples, st.integers(0, 16).map(lambda k: k / 16))
def test_venn_abers_is_isotonic_regression_with_the_new_row(rows, new):
    if len({y for _, y in rows}) == 2:
        p0, p1 = (float(isotonic([*rows, (new, y)])[new]) for y in (False, True))
        found = fitted(rows)
        assert [ends[0] for ends in found.interval([new])] == [p0, p1]
        assert found([new])[0] == p1 / (1.0 - p0 + p1)


@every_method
def test_a_saved_one_gives_the_same_bytes(tmp_path, seed, method):
    p, y = log(seed)
    made = oc.fit_recalibration(p, y, method)
    made.save(tmp_path / "map.json")
    again = oc.load_recalibration(tmp_path / "map.json")
    points = np.linspace(0.0, 1.0, 1001)
    assert again(points).tobytes() == made(points).tobytes()
    assert again.method == method
    with pytest.raises(InvalidParameter, match=r"map\.json exists"):
        made.save(tmp_path / "map.json")


def other_method(said):
    """The text of a file, with its checksum, of a method that there is not."""
    own = {key: value for key, value in said.items() if key not in ("onlinecal", "sha256")} | {
        "method": "sigmoid"
    }
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
    return json.dumps(own | {"onlinecal": "recalibration", "sha256": digest})


def test_files_that_are_refused(tmp_path):
    file = tmp_path / "map.json"
    with pytest.raises(StoreError, match="no such file"):
        oc.load_recalibration(file)
    oc.fit_recalibration([0.2, 0.4], [0, 1]).save(file)
    text = file.read_text()
    said = json.loads(text)
    for wrong, words in (
        (text[:-9], "is cut off"),
        ("[]", "is no file of a recalibration"),
        ("{}", "is no file of a recalibration"),
        (json.dumps(said | {"onlinecal": "monitor"}), "is no file of a recalibration"),
        (json.dumps(said | {"version": 2}), "is of version 2, not 1"),
        (other_method(said), "has a map of the method 'sigmoid'; expected one of isotonic, platt"),
        (text.replace("0.2", "0.3"), "is damaged"),
    ):
        file.write_text(wrong)
        with pytest.raises(StoreError, match=words):
            oc.load_recalibration(file)


@pytest.mark.parametrize("levels", [None, 10, 1])
def test_isotonic_regression_is_that_of_scikit_learn_with_an_imagined_outcome(seed, levels):
    p, y = log(seed, 2000)
    p = p if levels is None else np.round(p * levels) / levels
    points = np.concatenate((np.linspace(0.0, 1.0, 2001), p))
    weights = np.append(np.ones(len(p)), [0.5, 0.5])
    wanted = IsotonicRegression().fit(np.append(p, [0.0, 1.0]), np.append(y, [1.0, 0.0]), weights)
    made = oc.fit_recalibration(p, y)
    np.testing.assert_allclose(made(points), wanted.predict(points), rtol=0.0, atol=1e-12)
    assert made.numbers["points"].tolist() == wanted.X_thresholds_.tolist()


@given(samples)
def test_platt_scaling_has_the_least_loss(rows):
    """Its derivatives are 0. Where all forecasts are equal, slope and shift are the least ones."""
    p, y = (np.array([row[i] for row in rows], float) for i in (0, 1))
    if 0 < y.sum() < len(y):
        made = oc.fit_recalibration(p, y, "platt")
        targets = np.where(y == 1.0, (y.sum() + 1) / (y.sum() + 2), 1 / (len(y) - y.sum() + 2))
        odds = scipy.special.logit(np.clip(p, 1e-6, 1.0 - 1e-6))
        short = made(p) - targets
        assert abs(short.sum()) < 1e-8
        assert abs((short * odds).sum()) < 1e-7
        if len({*p}) == 1:
            slope, shift = (float(made.numbers[name][0]) for name in ("slope", "shift"))
            assert slope == pytest.approx(shift * odds[0], abs=1e-9)


def test_platt_scaling_has_the_least_loss_where_steps_are_too_long():
    """Full steps of Newton's method would make the loss larger."""
    p, y, n = (
        np.array([0.14, 0.71, 0.74, 0.1]),
        np.array([1.0, 0.0, 1.0, 0.0]),
        np.array([1e-3, 1e3, 1.0, 1.0]),
    )
    ones, odds = (n * y).sum(), scipy.special.logit(p)
    targets = np.where(y == 1.0, (ones + 1.0) / (ones + 2.0), 1.0 / (n.sum() - ones + 2.0))
    short = n * (oc.fit_recalibration(p, y, "platt", weights=n)(p) - targets)
    assert abs(short.sum()) < 1e-8
    assert abs((short * odds).sum()) < 1e-8


def test_the_mean_of_the_smooth_one_takes_little_memory(seed):
    """It has 241 terms for a forecast: 193 MB for these in one array. In blocks it is the same as one by one."""
    made = oc.fit_recalibration(*log(seed), "smooth")
    p = np.random.default_rng(seed).random(100_000)
    tracemalloc.start()
    said = made(p)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5e7
    some = slice(None, None, 997)
    np.testing.assert_allclose(said[some], [made([a])[0] for a in p[some]], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["isotonic", "platt", "venn_abers"])
def test_inverses_hold_all_forecasts_that_are_mapped_there(seed, method):
    made = oc.fit_recalibration(*log(seed), method)
    points = np.linspace(0.0, 1.0, 777)
    values = made(points)
    lower, upper = made.inverse(values)
    assert (lower <= points).all()
    assert (points <= upper).all()
    # Beyond the ends, the values are others.
    assert (made(np.nextafter(lower, 0.0))[lower > 0.0] < values[lower > 0.0]).all()
    assert (made(np.nextafter(upper, 1.0))[upper < 1.0] > values[upper < 1.0]).all()
    ends = made([0.0, 1.0])
    between = np.linspace(*ends, 99)
    lower, upper = made.inverse(between)
    assert (lower <= upper).all()
    if method != "venn_abers":  # it jumps
        np.testing.assert_allclose(made(lower), between, rtol=0.0, atol=1e-9)
    assert np.isnan(made.inverse([0.0, 1.0])[0]).all()  # outside of all values
    flat = oc.fit_recalibration([0.5] * 4, [0, 1, 0, 1], "platt").inverse([0.5])
    assert [end.tolist() for end in flat] == [[0.0], [1.0]]


P, Y = log(1)
REFUSED = [
    (lambda: oc.fit_recalibration([0.1, 0.2], [1, 1]), "all 2 outcomes are 1; expected some 0 and some 1"),
    (lambda: oc.fit_recalibration(P, Y).interval([0.5]), "interval of 'isotonic'"),
    (lambda: oc.fit_recalibration(P, Y, "smooth").inverse([0.5]), "the inverse of 'smooth' is not known"),
    (lambda: oc.fit_recalibration(1.0 - P, Y, "platt").inverse([0.5]), "the inverse of 'platt' is not known"),
    *((lambda name=name: oc.fit_recalibration(P, Y, name), r"'venn_abers'; did you mean 'platt'\?$")
      for name in ("sigmoid", "Platt scaling", "platt_refitted")),
    *((lambda name=name: oc.Recalibrator(name), r"did you mean 'platt'\?$") for name in ("sigmoid", "Platt scaling")),
]  # fmt: skip


@pytest.mark.parametrize(("use", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(use, words):
    with pytest.raises((InvalidData, InvalidParameter, UnknownName), match=words):
        use()


def test_a_map_goes_from_one_file_to_another(tmp_path):
    p, y = log(3, 60)
    old = "p,y\n" + "".join(f"{a!r},{b:g}\n" for a, b in zip(p.tolist(), y, strict=True)) + "0.5,\n"
    (tmp_path / "old.csv").write_text(old)
    (tmp_path / "new.csv").write_text("name,p\na,0.25\nb,\nc,0.75\n")
    given = "--with venn_abers_refitted -o a.csv -m brier --draws 0 --save map.json"
    onlinecal(f"recalibrate old.csv {given}", cwd=tmp_path)
    said = onlinecal("recalibrate new.csv --apply map.json -o b.csv", cwd=tmp_path, rc=2).stderr
    assert "line 3: column 'p' is missing" in said
    given = "--apply map.json -o b.csv --skip-missing --json"
    found = json.loads(onlinecal(f"recalibrate new.csv {given}", cwd=tmp_path).stdout)
    assert (found["rows"], found["said"][-1]) == (2, "left empty: 1 row without a forecast")
    q = oc.fit_recalibration(p, y, "venn_abers")([0.25, 0.75])
    wanted = f"name,p,recalibrated\na,0.25,{float(q[0])!r}\nb,,\nc,0.75,{float(q[1])!r}\n"
    assert (tmp_path / "b.csv").read_text() == wanted
    many, remarks = apply_file(
        str(tmp_path / "a.csv"), tmp_path / "d.csv", tmp_path / "map.json", column="again"
    )
    assert (many, [each for each in remarks if "left empty" in each]) == (61, [])
    said = onlinecal("recalibrate old.csv -o c.csv --save c.json", cwd=tmp_path, rc=2).stderr
    assert "'aggregated' has no map that could be saved; expected --with one of isotonic_refitted" in said
    said = onlinecal("recalibrate old.csv -o c.csv --save c.json --apply map.json", cwd=tmp_path, rc=2).stderr
    assert "--apply with --save" in said
    assert not {"c.csv", "c.json"} & {file.name for file in tmp_path.iterdir()}


def test_a_sigmoid_never_states_0_or_1():
    """Two forecasts that tell all: the slope is above 10, and the log odds of 0 and 1 are ∓13.8."""
    fitted = oc.fit_recalibration(np.tile([0.45, 0.55], 500), np.tile([0, 1], 500), "platt")
    assert scipy.special.expit(13.8 * fitted.numbers["slope"]) == 1.0
    low, high = fitted([0.0, 1.0])
    assert 0.0 < low < high < 1.0
