"""The commands as functions."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from ._program import run_json, run_text
from ._results import (
    Comparison,
    Explanation,
    Export,
    ModelSummary,
    PlanResult,
    ProfileSummary,
    Simulation,
    Table,
    Validation,
)

Value = Union[bool, int, float, str, Sequence[Any], Mapping[str, Any], None]
#: A plan: a file, what plan() returned, or the JSON of either form.
Plan = Union[str, "os.PathLike[str]", PlanResult, Mapping[str, Any]]

_REPEATED = {"fix", "forbid", "allow", "min", "max", "slow_device", "slow_link"}
# Flags of a plan: False is a value, not the absence of the option.
_PLAN_FLAGS = {"sequence_parallel", "overlap_gradient_reduction", "overlap_parameter_gather", "overlap_pipeline",
               "overlap_tensor", "overlap_expert"}


def _option(name: str, value: Value) -> list[str]:
    option = "--" + name.replace("_", "-")
    if value is None or (value is False and name not in _PLAN_FLAGS):
        return []
    if isinstance(value, bool):
        return [option if value else option + "=false"]
    if isinstance(value, Mapping):
        return [word for key, of in value.items() for word in (option, f"{key}={of}")]
    if isinstance(value, (list, tuple)):
        if name in _REPEATED:
            return [word for one in value for word in (option, str(one))]
        return [option, ",".join(str(one) for one in value)]
    return [option, str(value)]


def _options(options: Mapping[str, Value]) -> list[str]:
    return [word for name, value in options.items() for word in _option(name, value)]


@contextmanager
def _plan_file(plan: Optional[Plan]) -> Iterator[list[str]]:
    """The plan as a file that a command can read, for as long as the context lasts."""
    if plan is None:
        yield []
    elif isinstance(plan, (PlanResult, Mapping)):
        content = plan.plan_file() if isinstance(plan, PlanResult) else dict(plan)
        with tempfile.TemporaryDirectory(prefix="trivium-") as folder:
            file = Path(folder) / "plan.json"
            file.write_text(json.dumps(content))
            yield [str(file)]
    else:
        yield [os.fspath(plan)]


def plan(model: Optional[str] = None, cluster: Optional[str] = None, *, like: Optional[Plan] = None,
         global_batch: Optional[int] = None, **options: Value) -> PlanResult:
    """Searches the fastest plan that fits.

    `model`: a shipped name, a file, or a Hugging Face config.json. `cluster`: "NAME:N", "A:16+B:16" or a file.
    `like`: a plan whose job is taken. Every option of ``trivium plan`` may be given: ``tensor=8``,
    ``forbid=["offload"]``, ``max={"tensor": 4}``, ``tokens="300B"``.
    Errors: NoPlanError where none fits; its `output` has the search and the nearest requests that fit.
    """
    given: dict[str, Value] = {"model": model, "cluster": cluster, "global_batch": global_batch}
    with _plan_file(like) as file:
        return PlanResult.from_json(run_json("plan", *file, *_options({**given, **options})))


def simulate(plan: Optional[Plan] = None, **options: Value) -> Simulation:
    """Predicts one plan's iteration, breakdown and memory; options change the plan: ``recompute="full"``."""
    with _plan_file(plan) as file:
        return Simulation.from_json(run_json("simulate", *file, *_options(options)))


def explain(plan: Plan, *, why_not: Optional[Plan] = None, **options: Value) -> Explanation:
    """Says what limits a plan and what to change first, or why not another plan."""
    with _plan_file(plan) as file, _plan_file(why_not) as other:
        against = ["--why-not", *other] if other else []
        return Explanation.from_json(run_json("explain", *file, *against, *_options(options)))


def compare(plans: Sequence[Plan], **options: Value) -> Comparison:
    """Sets plans side by side."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        files = [word for one in plans for word in stack.enter_context(_plan_file(one))]
        return Comparison.from_json(run_json("compare", *files, *_options(options)))


def export(plan: Plan, to: str, **options: Value) -> Export:
    """The file that launches a plan in another trainer: megatron, deepspeed, torchtitan, nemo, accelerate."""
    with _plan_file(plan) as file:
        return Export.from_json(run_json("export", *file, "--to", to, *_options(options)))


def validate(run: Union[str, "os.PathLike[str]", None] = None, *, plan: Optional[Plan] = None,
             runs: Union[str, "os.PathLike[str]", None] = None, **options: Value) -> Validation:
    """Compares a run record with its prediction, or with that of `plan`; `runs`: a table of published runs."""
    with _plan_file(plan) as file:
        words = [*file, *([os.fspath(run)] if run is not None else [])]
        words += ["--runs", os.fspath(runs)] if runs is not None else []
        return Validation.from_json(run_json("validate", *words, *_options(options)))


def models() -> Table[ModelSummary]:
    """The shipped models."""
    return Table(ModelSummary.from_json(one) for one in run_json("models")["models"])


def model(name: str) -> dict[str, Any]:
    """One model in the form trivium.model/1, with its parameters and FLOPs."""
    return dict(run_json("models", name))


def profiles() -> Table[ProfileSummary]:
    """The shipped hardware."""
    return Table(ProfileSummary.from_json(one) for one in run_json("profiles")["profiles"])


def profile(name: str) -> dict[str, Any]:
    """One node in the form trivium.hardware/1; every constant has its source."""
    return dict(run_json("profiles", name))


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a form: "plan", "plan-result", "simulation"."""
    return dict(json.loads(run_text(["schema", name])))
