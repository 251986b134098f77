"""What the project's pydantic models have in common."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A model whose fields do not change.

    Its validator is built when it is first used: a session needs only some of them, and the nested
    ones never by themselves.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)


class Record(Value):
    """A value that is written to disk: a field this version does not know is an error."""

    model_config = ConfigDict(extra="forbid")
