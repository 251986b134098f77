"""The work with Inspect AI: ``inspect_run.py URL AT_ONCE``."""

from __future__ import annotations

import asyncio
import os
import sys

import work
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ResponseSchema, get_model
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate
from inspect_ai.util import JSONSchema

URL, AT_ONCE = sys.argv[1], int(sys.argv[2])
os.environ |= {"OPENAI_BASE_URL": URL, "OPENAI_API_KEY": "none"}


@scorer(metrics=[mean()])
def panel():
    """Both judges at once."""
    schema = ResponseSchema(name="scores", json_schema=JSONSchema.model_validate(work.SCHEMA))
    settings = GenerateConfig(response_schema=schema, max_connections=AT_ONCE)

    async def score(state, target):
        prompt = work.ask_for_scores(state.metadata["task"], state.output.completion)
        models = [get_model(f"openai/{judge}", responses_api=False) for judge in work.JUDGES]
        said = await asyncio.gather(*(m.generate(prompt, config=settings) for m in models))
        return Score(value=sum(work.overall(one.completion) for one in said) / 2)

    return score


texts = {path.stem: path.read_text() for path in work.tasks(201)}
samples = [
    Sample(id=name, input=work.ask_for_idea(text), metadata={"task": text})
    for name, text in texts.items()
]
logs = eval(
    Task(dataset=MemoryDataset(samples), solver=generate(), scorer=panel()),
    model=get_model(f"openai/{work.WRITER}", responses_api=False),
    max_connections=AT_ONCE,
    max_samples=AT_ONCE,
    display="none",
    log_dir="inspect",
)
sys.exit(0 if logs[0].status == "success" else 3)
