"""The bundled agent: real little experiments on the CPU, for the six tasks of the suite ``mini``.

It exists so that a run with nothing configured measures something true: no model is called, every
number in its report was computed by the code it leaves in the workspace, and it says so when its
hypothesis fails. Ideas, proposals and what a paper says in any case were written in advance
(``plans/``); results, claims and what a paper says of the outcome are made from what the run
measured. Run it as ``python -m pytest_mlrbench.agents.reference``.
"""
