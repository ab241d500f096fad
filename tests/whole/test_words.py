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


def test_no_more_cases_than_are_on_record():
    found = rooms()
    total = sum(counts.total() for counts in found.values())
    assert total <= RECORD, f"{total} cases, {found}: reword some of your room"


def test_each_manner_is_found():
    assert manners(SOURCE) == {"opening What": 1, "so many": 1, "who": 2, "anew": 1, "is none": 0, "long": 1}
    assert manners('"""The number of rounds."""\n# it is none\n')["is none"] == 1
