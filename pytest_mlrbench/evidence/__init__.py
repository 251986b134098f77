"""Is it real: which state a run really reached, and what supports that.

``gathering`` reads what there is of a run; the folders hold the looks at it, one kind each:
``reports`` what its documents claim, ``records`` where those numbers lead, ``history`` what its
transcript shows, ``ledgers`` what the sandbox recorded, ``code`` what its programs do, ``papers``
what its paper adds and cites, ``replays`` what comes of running it again. ``weighing`` turns what
they find into a level.
"""
