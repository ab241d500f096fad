"""Docstrings and comments are in plain words."""

from tests.words import manners, rooms

SOURCE = '''
def f():
    """What is given to whoever reads: so many words that a sentence of more than twenty of them stands here, and it
    is none of the short ones.

    Of the whole.
    """
    \x23 played anew
    \x23 for somebody
'''


def test_the_manners_that_are_avoided_have_no_case():
    found = {room: dict(+counts) for room, counts in rooms().items() if counts.total()}
    assert not found, "reword these docstrings and comments"


def test_each_manner_is_found():
    assert manners(SOURCE) == {"opening What": 1, "so many": 1, "who": 2, "anew": 1, "is none": 0, "long": 1}
    assert manners('"""The number of rounds."""\n# it is none\n')["is none"] == 1
