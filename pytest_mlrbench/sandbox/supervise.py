"""A process between us and an agent, so that nothing of the agent outlives its case.

    python -I -S supervise.py STATUS_FD GRACE PARENT COMMAND…

Orphans of a process are given to the nearest ancestor that has asked for them. This one asks, so a
daemon that has left its process group, its session and its environment is still a child here, and
is killed when the agent ends. It is told when its own parent dies, and then ends the agent as well:
an agent does not go on spending money after pytest was killed. (Both need Linux.)

SIGTERM ends the agent: SIGTERM to its group, then GRACE seconds later SIGKILL to all there is. The
agent's way to end, exit code or signal, becomes this process's own. Why it could not be started is
written to STATUS_FD.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(command: list[str], status: int) -> int:
    agent = os.fork()
    if agent:
        return agent
    try:
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(status, str(error).encode())
    os._exit(127)


def _children() -> list[int]:
    """Return the processes whose parent is this one."""
    found = []
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if parent == os.getpid():
                found.append(int(name))
    return found


def _kill_children(*_: object) -> None:
    for child in _children():
        os.kill(child, signal.SIGKILL)


def main() -> None:
    """Run the command to its end, leave nothing of it, and end the same way."""
    status, grace, parent, *command = sys.argv[1:]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGALRM, _kill_children)
    agent = _start(command, int(status))

    def end(*_: object) -> None:
        os.killpg(agent, signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, float(grace), 0.05)

    signal.signal(signal.SIGTERM, end)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):  # it died before we asked to be told
        end()
    ended, code = 0, 0
    while ended != agent:
        ended, code = os.waitpid(-1, 0)
    while children := _children():
        _kill_children()
        os.waitpid(children[0], 0)
    if os.WIFSIGNALED(code):
        if os.WTERMSIG(code) != signal.SIGKILL:  # which nobody can handle
            signal.signal(os.WTERMSIG(code), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(code))
    sys.exit(os.WEXITSTATUS(code))


if __name__ == "__main__":
    main()
