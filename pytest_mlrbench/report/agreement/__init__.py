"""Whether judges agree: with each other, and with people who rated the same work.

``ratings`` reads both into one form; ``measures`` has the statistics and ``intervals`` what they
are uncertain by; ``judges`` and ``people`` are the two comparisons (``matching`` finds
which rating is of which work), and the modules of words say them.
"""
