"""Forecasts of several classes as binary ones: both reductions by hand, and other libraries' numbers."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import onlinecal as oc
from onlinecal.cli import app
from onlinecal.measures import binned_ce, binned_ece

P = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.1, 0.45, 0.45], [0.05, 0.05, 0.9]])
LABEL = np.array([0, 1, 2, 2])
#: in the third row class 1 comes before class 2
TOP = [0.7, 0.4, 0.45, 0.9], [1.0, 0.0, 0.0, 1.0]
EACH = P.tolist(), [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(("reduction", "want"), [("top_label", TOP), ("class_wise", EACH)])
def test_both_reductions_of_whatever_holds_them(reduction, want):
    names = ["red", "green", "blue"]
    frame = pd.DataFrame(P, columns=names, index=[3, 1, 4, 1])
    named = pd.Series([names[i] for i in LABEL], index=frame.index)
    for given, options in (
        ((P, LABEL), {}),
        ((P.tolist(), LABEL.tolist()), {}),
        ((P, LABEL.astype(np.float32)), {}),
        ((frame, named), {"classes": names}),
        ((P, LABEL + 10), {"classes": (10, 11, 12)}),
    ):
        found = oc.binary_forecasts(*given, reduction=reduction, **options)
        assert tuple(one.tolist() for one in found) == want
        assert not np.shares_memory(found[0], P)


def test_the_numbers_of_torchmetrics_and_netcal():
    """torchmetrics 1.9.0 (torch 2.15.0), which adds the top label's in single precision, and netcal 1.4.0."""
    i = np.arange(300)
    raw = np.stack([1 + np.sin(i * (k + 1) * 0.7) for k in range(4)], axis=1) ** 2 + 0.05
    table, label = raw / raw.sum(axis=1, keepdims=True), (i * i + i // 3) % 4
    p, y = oc.binary_forecasts(table, label)
    # torchmetrics: multiclass_calibration_error(table, label, num_classes=4, n_bins=10 and 15, norm="l1")
    assert binned_ece(p, y, bins=10) == pytest.approx(0.21446309983730316, abs=2e-8)
    assert binned_ece(p, y, bins=15) == pytest.approx(0.21922241151332855, abs=2e-8)
    # … n_bins=10, norm="l2" and "max"
    assert binned_ce(p, y, bins=10, order=2) == pytest.approx(0.2414422631263733, abs=2e-8)
    assert binned_ce(p, y, bins=10, order=np.inf) == pytest.approx(0.558895468711853, abs=1e-7)
    # netcal: ECE(10), ECE(15) and MCE(10).measure(table, label)
    assert binned_ece(p, y, bins=10) == pytest.approx(0.2144630949708904, abs=1e-14)
    assert binned_ece(p, y, bins=15) == pytest.approx(0.2192224112721456, abs=1e-14)
    assert binned_ce(p, y, bins=10, order=np.inf) == pytest.approx(0.558895438204557, abs=1e-14)
    # torchmetrics: binary_calibration_error(table[:, k], label == k, n_bins=10)
    p, y = oc.binary_forecasts(table, label, reduction="class_wise")
    want = [0.18978948187676611, 0.20370333654458678, 0.1976119612839705, 0.1995219450077899]
    assert [binned_ece(p[:, k], y[:, k], bins=10) for k in range(4)] == pytest.approx(want, abs=1e-14)


@pytest.mark.parametrize("named", [[], ["-f", "sun", "-f", "rain", "-f", "snow"]])
def test_the_command_measures_labels_class_by_class(tmp_path, named):
    """Probabilities of two decimals miss 1 by up to 0.01; the rows without a label are left out."""
    generator, names = np.random.default_rng(5), ["rain", "snow", "sun"]
    table = generator.dirichlet([1.0, 1.0, 1.0], 400).round(2)
    label = (generator.random(400)[:, None] > table[:, :2].cumsum(axis=1)).sum(axis=1)
    frame = pd.DataFrame(table, columns=names).assign(weather=[names[k] for k in label], site=label % 2)
    frame.loc[:9, "weather"] = ""
    frame.to_csv(tmp_path / "f.csv", index=False)
    asked = ["-m", "smooth_ce", "-m", "brier", "--draws", "39", "--skip-missing", "--by", "site", "--json"]
    found = json.loads(
        CliRunner().invoke(app, ["measure", str(tmp_path / "f.csv"), "--classes", *named, *asked]).stdout
    )
    assert "caution: the sum of probabilities of" in " ".join(found["said"])
    assert [column["name"] for column in found["forecasts"]] == (named[1::2] or names)
    p, y = oc.binary_forecasts(table[10:], label[10:], reduction="class_wise")
    for column in found["forecasts"]:
        k = names.index(column["name"])
        want = oc.evaluate(p[:, k], y[:, k], measures=("smooth_ce", "brier"), bootstrap=39, reference=39)
        for row, one in zip(column["measures"], want.rows, strict=True):
            assert (row["value"], tuple(row["interval"]), row["p_value"]) == (
                one.value,
                one.interval,
                one.p_value,
            )
        assert column["groups"][0]["event"] == y[label[10:] % 2 == 0, k].mean()
