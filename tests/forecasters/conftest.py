"""What tests of forecasters share."""

import pytest

from onlinecal.natures import NATURES
from tests import examples


@pytest.fixture(scope="module")
def against(tmp_path_factory):
    """The examples of a registered nature."""
    natures = examples.natures(tmp_path_factory.mktemp("examples"))
    return lambda name: [nature for nature in natures if type(nature) is NATURES[name]]
