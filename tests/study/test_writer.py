"""One writer: all that is finished together is put away in one transaction."""

from tests.executors import Disorderly
from tests.results import cells, played, read
from tests.results import session as opened


class Together(Disorderly):
    def events(self):
        return [event for _ in range(len(self._held)) for event in Disorderly.events(self)]


def test_what_is_finished_together_is_put_away_together(tmp_path):
    path, planned, commits = tmp_path / "a.db", cells(), []
    with opened(path, planned) as session:
        session._store._db._connection.set_trace_callback(
            lambda statement: commits.append(statement) if statement == "COMMIT" else None
        )
        session.play(Together(workers=3))
    assert len(commits) <= len(planned) / 2
    assert read(path).cells == played(tmp_path / "b.db", planned)[0].cells
