"""What was played, and parts of it."""

import onlinecal as oc


def test_only_some_of_a_study():
    study = oc.play(
        [oc.forecasters.Constant(), oc.forecasters.EmpiricalMean()], oc.natures.Drift(), horizon=50, runs=1
    )
    assert study.only(["constant"]).forecasters == ["constant"]
    assert study.only(None, ["drift"]).natures == ["drift"]
