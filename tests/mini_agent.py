"""An agent that does again, in a container, what the transcript of another one says.

As a coding CLI it writes files in its own process, has commands run by a shell, and asks a model
where there should be one: it answers itself. Not imported by tests: it is given to containers.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path.cwd()


def main() -> None:
    steps = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with socket.create_server(("127.0.0.1", 8080)) as model:
        socket.create_connection(model.getsockname()).close()
    programs = Path.home() / "bin"
    programs.mkdir(exist_ok=True)
    if not (programs / "python").exists():
        (programs / "python").symlink_to("/usr/bin/python3")
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    for step in steps:
        if "command" in step:
            subprocess.run(["sh", "-c", step["command"]], check=False)
        elif step.get("always", True) or not (HERE / step["path"]).exists():
            (HERE / step["path"]).parent.mkdir(parents=True, exist_ok=True)
            (HERE / step["path"]).write_text(step["content"], "utf-8")


main()
