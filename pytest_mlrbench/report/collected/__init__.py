"""Scores read back: from JUnit XML, JSON reports and run folders to one table of cases.

``sources`` reads a file or folder (``xml`` what JUnit files hold) into ``rows``; ``merging`` says
what is to become of a case that stands in several; ``collecting`` is all of it, for programs, and
``words`` for people.
"""
