"""Whether compiling pays: what it takes and what it saves.

The values for a CPU are measured (docs/recipes.md). Those for a GPU are from other people's
reports; we have not measured them.
"""

COMPILE_S = {"cpu": 60.0, "cuda": 60.0}
SAVED_SHARE = {"cpu": 0.1, "cuda": 0.35}  # of an iteration
SURELY = 1.5  # on a busy machine, updates seem slower than they are, and compiling takes longer


def compiling_pays(kind: str, run_s: float) -> bool:
    """Does it save more time in a run than it takes? `run_s` is what the run takes without.

    >>> compiling_pays("cuda", 3600.0), compiling_pays("cuda", 120.0)
    (True, False)
    """
    return SAVED_SHARE[kind] * run_s > SURELY * COMPILE_S[kind]
