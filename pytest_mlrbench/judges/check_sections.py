"""The sections that the document of a stage should have."""

from __future__ import annotations

import re
from functools import cache

#: Stage → section → what its heading may say.
SECTIONS = {
    "idea": {
        "motivation": r"motivation|background|problem|context|introduction",
        "main idea": r"idea|approach|method|proposed|proposal",
    },
    "proposal": {
        "introduction": r"introduction|background|motivation|objective",
        "method": r"method|approach|design|algorithm",
        "evaluation": r"evaluation|experiment|validation|metric",
        "outcomes": r"outcome|impact|expected|contribution",
    },
    "experiment": {
        "set-up": r"set-?\s?up|setting|config|data|method|protocol|overview|description|design",
        "results": r"result|performance|comparison|finding|metric",
        "discussion": r"discussion|analysis|finding|interpretation|insight|conclusion|observation",
    },
    "paper": {
        "abstract": r"abstract",
        "introduction": r"introduction",
        "related work": r"related|background|prior",
        "method": r"method|approach|model|framework",
        "set-up": r"set-?\s?up|experiment|data|setting|protocol",
        "results": r"result|performance|finding",
        "analysis": r"analysis|discussion|ablation|limitation",
        "conclusion": r"conclusion|summary",
        "references": r"reference|bibliography",
    },
}
SECTIONS["end_to_end"] = SECTIONS["paper"]


@cache
def labels(stage: str) -> re.Pattern[str]:
    """Return what a bold or ``Label:`` line must say to count as a heading."""
    names = "|".join(["title", "limitation", "risk", *SECTIONS[stage].values()])
    return re.compile(rf"(?:[\w&/-]+ ){{0,3}}(?:{names})[\w-]{{0,20}}(?: [\w&/-]+){{0,3}}", re.I)
