"""Which calls of the kernel a container with a recorder may make.

The list in ``seccomp.json`` is in the form that Docker takes. It names what is allowed, which is
what containers are usually allowed, but for what would hide something from the recorder:

- calls that open files unseen (``openat2``, ``io_uring``, ``open_by_handle_at``) or start processes
  unseen (``clone3``, ``CLONE_UNTRACED``, new namespaces),
- calls that act in another process or with its files (``process_vm_writev``, ``pidfd_getfd``,
  ``ptrace`` but for what the tracer itself needs: all else is traced already, so nobody else can),
- filters of the agent's own whose answers go before the tracer's (``SECCOMP_RET_USER_NOTIF``),
- calls by another ABI than the machine's own, whose numbers mean other things: they are fatal.
"""

from __future__ import annotations

from pathlib import Path


def profile() -> str:
    """The profile, as the value of Docker's security option ``seccomp``."""
    return Path(__file__).with_name("seccomp.json").read_text("utf-8")
