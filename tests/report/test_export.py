"""The table for other tools: every number once, with all its digits."""

import numpy as np
import pandas as pd
import pytest

import onlinecal as oc
from onlinecal.core.errors import InvalidParameter
from onlinecal.study.tables import export

F, N = oc.forecasters, oc.natures


@pytest.fixture(scope="module")
def study():
    return oc.play(
        [F.ForecastHedging(), F.Constant(1.0)],
        [N.Bernoulli(0.3), N.Streams((N.Drift(), N.Bernoulli(0.2)))],
        horizon=40, runs=2, measures=["log_loss", {"name": "binned_ece", "bins": 5}, "distance_upper"],
        tasks=[{"name": "umbrella", "response": {"name": "rounded", "m": 10}}], delays=[0, 3], per_decade=2,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_every_number_is_there_with_all_its_digits(study, tmp_path, name):
    """Of files that fail or are there already: tests/core/test_writing.py."""
    path = tmp_path / "sub" / name
    count = export(study.cells, path)
    table = pd.read_csv(path, keep_default_na=False) if name.endswith("csv") else pd.read_parquet(path)
    assert len(table) == count == sum(t.size for cell in study.cells for t in cell.totals.values())
    at = 0
    for cell in study.cells:
        for column in cell.columns:
            totals = cell.totals[column.name]
            rows = table[at : at + totals.size]
            at += totals.size
            assert rows.total.to_numpy(np.float64).tobytes() == totals.tobytes()
            assert [*rows][4:7] == ["round", "run", "open"]
            said = rows.drop(columns=["total", "run", "round", "open"]).drop_duplicates()
            assert said.to_dict("records") == [{
                "forecaster": cell.forecaster, "nature": cell.schedule[0], "schedule": cell.schedule[1],
                "horizon": 40, "column": column.name, "kind": column.kind, "measure": column.measure,
                "options": "bins=5" if column.measure == "binned_ece" else "", "end": column.end,
                "stream": column.stream, "task": column.task, "response": column.response,
            }]  # fmt: skip
            assert rows["round"].tolist() == np.repeat(cell.rounds, 2).tolist()
            assert rows.run.tolist() == [0, 1] * len(cell.rounds)
            assert rows.open.tolist() == np.repeat(cell.open or [0] * len(cell.rounds), 2).tolist()
    assert np.isinf(table.total).any()


def test_other_names_are_refused_and_nothing_is_written(study, tmp_path):
    for name in ("t.xlsx", "t", "t.CSV"):
        with pytest.raises(InvalidParameter, match=r"expected a name that ends with \.csv or \.parquet"):
            export(study.cells, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
