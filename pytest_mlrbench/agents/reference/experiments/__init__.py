"""The experiments: one module per task beside the machinery all of them share.

These files are copied into the workspace and run there (``python -m experiments.<task>``), so they
import nothing of the package around them.
"""
