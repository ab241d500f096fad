"""Alarms of a log that has many are printed as a summary."""

from onlinecal.commands.forecasts import PRINTED
from onlinecal.monitoring.alarms import summary
from onlinecal.monitoring.monitor import Monitor
from tests.command_line import onlinecal


def test_many_alarms_are_a_summary(tmp_path):
    rows = ["p,y", *("0.9,0" for _ in range(800)), *("1,0" for _ in range(3))]
    (tmp_path / "log.csv").write_text("\n".join(rows) + "\n")
    monitor = Monitor(0.05, restart="same")
    alarms = monitor.update([0.9] * 800 + [1.0] * 3, [0] * 803)
    assert len(alarms) > PRINTED
    done = onlinecal("watch", "log.csv", "--restart", "same", cwd=tmp_path, rc=1)
    lines = done.stdout.splitlines()
    assert lines[:PRINTED] == [str(alarm) for alarm in alarms[:PRINTED]]
    assert lines[PRINTED] == "…"
    assert lines[PRINTED + 1 : PRINTED + 4] == summary(alarms)
    assert lines[PRINTED + 4].startswith("803 events, ")
    kinds = f"{len(alarms) - 3} of predictions that are too high, 3 of outcomes that were excluded"
    assert summary(alarms)[0] == f"{len(alarms)} alarms: {kinds}"
