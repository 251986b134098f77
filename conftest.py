"""The set-up of this repository's own tests is ``tests/conftest.py``.

Where the project is installed in place, pytest reads this file in every run of the shipped tests,
from whatever folder: so it sets nothing up, and it must not name plugins.
"""
