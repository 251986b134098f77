"""The work with asyncio and the openai SDK alone: ``plain.py URL [TASKS] [AT_ONCE]``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import work
from openai import AsyncOpenAI


async def main(url: str, number: int = 201, at_once: int = 64) -> None:
    """Measure all cases, and write them down at the end."""
    turn = asyncio.Semaphore(at_once)
    form = {"type": "json_schema", "json_schema": {"name": "scores", "schema": work.SCHEMA}}
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def ask(model: str, prompt: str, **more: object) -> str:
            messages = [{"role": "user", "content": prompt}]
            answer = await client.chat.completions.create(model=model, messages=messages, **more)
            return answer.choices[0].message.content or ""

        async def case(path: Path) -> float:
            async with turn:
                task = path.read_text()
                idea = await ask(work.WRITER, work.ask_for_idea(task))
                prompt = work.ask_for_scores(task, idea)
                said = [ask(judge, prompt, response_format=form) for judge in work.JUDGES]
                return sum(map(work.overall, await asyncio.gather(*said))) / 2

        scores = await asyncio.gather(*map(case, work.tasks(number)))
    Path("plain.json").write_text(json.dumps(scores))


asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
