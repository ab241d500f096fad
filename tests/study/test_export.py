"""Exported totals: every number with all its digits, in CSV and Parquet."""

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.study.tables import export

F, N = oc.forecasters, oc.natures


@pytest.fixture(scope="module")
def kinds():
    return oc.play(
        [F.ForecastHedging(), F.Constant(1.0)],
        [N.Bernoulli(0.3), N.Streams((N.Drift(), N.Bernoulli(0.2)))],
        horizon=40, runs=2, measures=["log_loss", {"name": "binned_ece", "bins": 5}, "distance_upper"],
        tasks=[{"name": "umbrella", "response": {"name": "rounded", "m": 10}}], delays=[0, 3], per_decade=2,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_every_number_is_there_with_all_its_digits(kinds, tmp_path, name):
    """Of files that fail or are there already: tests/core/test_writing.py."""
    path = tmp_path / "sub" / name
    count = export(kinds.cells, path)
    table = pd.read_csv(path, keep_default_na=False) if name.endswith("csv") else pd.read_parquet(path)
    assert len(table) == count == sum(t.size for each in kinds.cells for t in each.totals.values())
    assert [table[name].dtype.kind for name in ("horizon", "round", "run", "open", "total")] == [*"iiiif"]
    at = 0
    for each in kinds.cells:
        for column in each.columns:
            values = each.totals[column.name]
            rows = table[at : at + values.size]
            at += values.size
            assert rows.total.to_numpy(np.float64).tobytes() == values.tobytes()
            assert [*rows][4:7] == ["round", "run", "open"]
            said = rows.drop(columns=["total", "run", "round", "open"]).drop_duplicates()
            assert said.to_dict("records") == [{
                "forecaster": each.forecaster, "nature": each.schedule[0], "schedule": each.schedule[1],
                "horizon": 40, "column": column.name, "kind": column.kind, "measure": column.measure,
                "options": "bins=5" if column.measure == "binned_ece" else "", "end": column.end,
                "stream": column.stream, "task": column.task, "response": column.response,
            }]  # fmt: skip
            assert rows["round"].tolist() == np.repeat(each.rounds, 2).tolist()
            assert rows.run.tolist() == [0, 1] * len(each.rounds)
            assert rows.open.tolist() == np.repeat(each.open or [0] * len(each.rounds), 2).tolist()
    assert np.isinf(table.total).any()
    with pytest.raises(InvalidParameter, match=r"expected a name that ends with \.csv or \.parquet"):
        export(kinds.cells, tmp_path / "t.xlsx")
    assert not (tmp_path / "t.xlsx").exists()
