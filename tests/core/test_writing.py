"""Files are there whole or not at all."""

import pytest

from onlinecal.core.errors import InvalidParameter
from onlinecal.core.writing import whole


def test_a_file_takes_the_place_of_the_one_before(tmp_path):
    path = tmp_path / "new" / "a.txt"
    for text in ("first", "second"):
        with whole(path) as new:
            new.write_text(text)
            assert not path.exists() or path.read_text() == "first"
        assert path.read_text() == text
    assert [file.name for file in path.parent.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_what_fails_leaves_what_was_there(tmp_path, fault):
    path = tmp_path / "a.txt"
    path.write_text("before")
    expected = InvalidParameter if isinstance(fault, OSError) else type(fault)

    def written():
        with whole(path) as new:
            new.write_text("half")
            raise fault

    with pytest.raises(expected) as raised:
        written()
    if expected is InvalidParameter:
        assert str(raised.value) == f"{path} cannot be written: No space left on device"
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_that_cannot_be_written_is_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "a.txt", tmp_path):
        with pytest.raises(InvalidParameter, match=r"cannot be written: [^\n]+$"), whole(path) as new:
            new.write_text("a")
