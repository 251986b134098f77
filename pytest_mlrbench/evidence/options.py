"""What a run makes of evidence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvidenceOptions:
    """What is made of the evidence, beside a level and findings.

    :param checkpoints: whether the stages within an end-to-end case are scored by themselves.
    :param stops: whether results that nothing executed supports end a chain.
    :param is_shown: whether judges are shown what was found.
    :param replays: whether the command that a submission declares is run again.
    :param asks: whether catalogues are asked for the works that are cited.
    """

    checkpoints: bool = True
    stops: bool = False
    is_shown: bool = False
    asks: bool = False
    replays: bool = False
