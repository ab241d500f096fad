"""Docstrings and comments are in plain words: the cases of manners that are avoided only become fewer."""

from tests.words import RECORD, manners, rooms

SOURCE = '''
def f():
    """What is given to whoever reads: so many words that a sentence of more than twenty of them stands here, and it
    is none of the short ones.

    Of the whole.
    """
    # played anew
    # for somebody
'''


def test_no_room_has_more_cases_than_are_on_record():
    over = {room: dict(counts) for room, counts in rooms().items() if counts.total() > RECORD.get(room, 0)}
    assert not over, "reword them; `python -m tests.words` counts, and `--write` lowers the record"


def test_each_manner_is_found():
    expected = {"opening What": 1, "so many": 1, "who": 2, "anew": 1, "is none": 0, "long": 1, "no verb": 1}
    assert manners(SOURCE) == expected
    assert manners('"""The number of rounds."""\n# it is none\n')["is none"] == 1
