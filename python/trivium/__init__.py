"""Plans, simulates and validates the training of GPT models over clusters.

A thin typed module over ``trivium --json``: options are those of the commands, with underscores for hyphens.
"""

from ._errors import HardwareError, InputError, NoPlanError, RunError, TriviumError, UsageError
from ._functions import compare, explain, export, model, models, plan, profile, profiles, schema, simulate, validate
from ._program import program, run_json, version
from ._results import (
    Candidate,
    Comparison,
    Explanation,
    Export,
    ModelSummary,
    PlanResult,
    ProfileSummary,
    RankFigures,
    Simulation,
    Table,
    Validation,
    ValidationRow,
)

__all__ = [
    "Candidate", "Comparison", "Explanation", "Export", "HardwareError", "InputError", "ModelSummary", "NoPlanError",
    "PlanResult", "ProfileSummary", "RankFigures", "RunError", "Simulation", "Table", "TriviumError", "UsageError",
    "Validation", "ValidationRow", "compare", "explain", "export", "model", "models", "plan", "profile", "profiles",
    "program", "run_json", "schema", "simulate", "validate", "version",
]
