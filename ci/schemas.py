"""Write the JSON Schemas of everything a run writes, or check that those shipped are true.

python ci/schemas.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel

from pytest_mlrbench.evidence.base import Evidence
from pytest_mlrbench.judges.review import Review, UnusableReview
from pytest_mlrbench.report.document import Report
from pytest_mlrbench.run.folder import JournalLine
from pytest_mlrbench.run.record import RunRecord
from pytest_mlrbench.run.result import CaseResult
from pytest_mlrbench.run.submission import SubmissionRecord

FOLDER = Path(__file__).parents[1] / "pytest_mlrbench" / "schemas"

#: File of the run folder (or report) → what it holds.
MODELS: dict[str, type[BaseModel]] = {
    "run": RunRecord,
    "journal-line": JournalLine,
    "submission": SubmissionRecord,
    "evidence": Evidence,
    "review": Review,
    "unusable-review": UnusableReview,
    "result": CaseResult,
    "report": Report,
}


def main() -> int:
    """Write or check every schema."""
    stale = []
    for name, model in MODELS.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        schema |= model.model_json_schema(mode="serialization")
        text = json.dumps(schema, indent=1) + "\n"
        path = FOLDER / f"{name}.schema.json"
        if "--check" in sys.argv:
            if not path.exists() or path.read_text("utf-8") != text:
                stale.append(path.name)
        else:
            path.write_text(text, "utf-8")
    if stale:
        print(f"not what the models say: {', '.join(stale)}; run python ci/schemas.py")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
