"""How many tokens a call will use at most, before it is made."""

from __future__ import annotations

import json
import math

from pytest_mlrbench.models.exchange import Prompt, Request, Usage

#: Most tokens of an answer where nobody has set any: without one there is no worst case.
UNSAID = 16_000
#: UTF-8 bytes that are taken for one token; English has more of them, digits may have fewer.
BYTES_PER_TOKEN = 3
#: What an image of the usual size counts as, of the three providers the most.
IMAGE_TOKENS = 1_600
#: For what is around each message.
MESSAGE_TOKENS = 16


def worst_usage(prompt: Prompt, wanted: Request) -> Usage:
    """Return the most that one answer is taken to use."""
    return Usage(input=input_tokens(prompt, wanted), output=wanted.max_tokens or UNSAID)


def input_tokens(prompt: Prompt, wanted: Request) -> int:
    """Return how many tokens of input a call is taken for at most."""
    parts = [part for message in prompt.messages for part in message.parts]
    texts = [prompt.system, *(part for part in parts if isinstance(part, str))]
    if wanted.json_schema is not None:
        texts.append(json.dumps(wanted.json_schema))
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    images = sum(not isinstance(part, str) for part in parts)
    around = MESSAGE_TOKENS * (len(prompt.messages) + 1)
    return math.ceil(size / BYTES_PER_TOKEN) + IMAGE_TOKENS * images + around
