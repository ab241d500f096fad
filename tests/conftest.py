"""Settings of all tests."""

from hypothesis import settings

# The first example may pay for a compilation, so examples have no deadline; a failure prints how to get it again.
settings.register_profile("onlinecal", deadline=None, print_blob=True)
settings.load_profile("onlinecal")
