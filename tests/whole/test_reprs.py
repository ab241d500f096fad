"""What an interpreter shows: the public names of the package, and results in one line."""

import onlinecal as oc


def test_dir_is_the_public_names():
    assert sorted(dir(oc)) == sorted([*oc.__all__, "__version__"])
    assert "importlib" not in dir(oc)


def test_results_in_one_line():
    study = oc.play("forecast_hedging", "bernoulli", horizon=64, runs=2, measures=["ece"], progress=False)
    played = study.cells[0]
    said = "forecast hedging against bernoulli"
    assert repr(played) == f"Played({said}, T = 64, 2 runs, ece)"
    curve = study.curve("ece")
    assert repr(curve) == f"Curve(ece, {said}, T = {curve.rounds[0]:,} to 64, 2 runs)"
    growth = curve.exponent()
    assert repr(growth) == f"Growth({growth})"
    assert f"<b>{growth}</b>, with 95%" in growth._repr_html_()
    shown = played._repr_html_()
    assert f"<p>{said}: mean totals over 2 runs</p>" in shown
    assert f"<td>{played.totals['ece'][-1].mean():.4g}</td>" in shown
