"""What the commands answer, typed. Every result keeps in `json` all that the program wrote (docs/reference/formats.md)."""

from __future__ import annotations

import dataclasses
import json as _json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Iterable, Optional, TypeVar, Union

if TYPE_CHECKING:
    import pandas

Json = dict[str, Any]
Row = TypeVar("Row")


def _frame(rows: Iterable[Json]) -> "pandas.DataFrame":
    try:
        import pandas
    except ImportError as missing:
        raise ImportError("to_frame() needs pandas; pip install pandas") from missing
    return pandas.DataFrame(list(rows))


def _flat(row: Any) -> Json:
    return {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.name != "json"}


class Table(list[Row], Generic[Row]):
    """A list of rows that is also a data frame."""

    def to_frame(self) -> "pandas.DataFrame":
        return _frame(_flat(row) for row in self)


def _interval(value: Optional[list[float]]) -> Optional[tuple[float, float]]:
    return None if value is None else (value[0], value[1])


def _headline(json: Json) -> Json:
    """The figures that a plan has wherever it is shown."""
    return {
        "iteration_s": json["iteration_s"],
        "iteration_expected_s": json.get("iteration_expected_s"),
        "iteration_interval_90_s": _interval(json.get("iteration_interval_90_s")),
        "tokens_per_s": json["tokens_per_s"],
        "mfu": json["mfu"],
        "hfu": json["hfu"],
        "peak_memory_bytes": json["peak_memory_bytes"],
        "fit_probability": json.get("fit_probability"),
    }


@dataclass(frozen=True)
class Candidate:
    """A plan with what is predicted of it."""

    plan: Json
    iteration_s: float
    iteration_expected_s: Optional[float]  #: half of the measurements are expected to take less
    iteration_interval_90_s: Optional[tuple[float, float]]  #: 90 of 100 measurements are expected within
    tokens_per_s: float
    mfu: float
    hfu: float
    peak_memory_bytes: int
    fit_probability: Optional[float]
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "Candidate":
        return Candidate(plan=json["plan"], **_headline(json), json=json)


@dataclass(frozen=True)
class PlanResult:
    """What a search found."""

    best: Candidate
    top: Table[Candidate]  #: the best first
    others: Table[Candidate]  #: of other families; they prove nothing
    model: Any
    cluster: Any
    training: Json
    search: Json
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "PlanResult":
        return PlanResult(best=Candidate.from_json(json["best"]),
                          top=Table(Candidate.from_json(one) for one in json["top"]),
                          others=Table(Candidate.from_json(one) for one in json.get("others", [])),
                          model=json["model"], cluster=json["cluster"], training=json["training"],
                          search=json["search"], json=json)

    def plan_file(self) -> Json:
        """The best plan in the form trivium.plan/1."""
        return {"schema": "trivium.plan/1", "model": self.model, "cluster": self.cluster, "training": self.training,
                "plan": self.best.plan}

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the best plan as a plan file."""
        with open(path, "w", encoding="utf-8") as file:
            _json.dump(self.plan_file(), file, indent=2)
            file.write("\n")

    def to_frame(self) -> "pandas.DataFrame":
        """A row for every plan of `top` and `others`: its figures, and the fields of the plan."""
        return _frame({**{k: v for k, v in _flat(one).items() if k != "plan"}, **one.plan}
                      for one in [*self.top, *(o for o in self.others if o not in self.top)])


@dataclass(frozen=True)
class RankFigures:
    """One rank of a simulation."""

    rank: int
    stage: int
    peak_memory_bytes: int
    memory_bytes: dict[str, int]
    breakdown_s: dict[str, float]

    @staticmethod
    def from_json(json: Json) -> "RankFigures":
        return RankFigures(**{f.name: json[f.name] for f in dataclasses.fields(RankFigures)})


@dataclass(frozen=True)
class Simulation:
    """A plan's predicted figures."""

    model: str
    cluster: str
    training: Json
    plan: Json
    iteration_s: float
    iteration_expected_s: Optional[float]
    iteration_interval_90_s: Optional[tuple[float, float]]
    tokens_per_s: float
    mfu: float
    hfu: float
    peak_memory_bytes: int
    fit_probability: Optional[float]
    breakdown_s: dict[str, float]  #: mean over ranks; sums to iteration_s
    ranks: Table[RankFigures]
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "Simulation":
        return Simulation(model=json["model"], cluster=json["cluster"], training=json["training"], plan=json["plan"],
                          **_headline(json), breakdown_s=json["breakdown_s"],
                          ranks=Table(RankFigures.from_json(one) for one in json["ranks"]), json=json)

    def to_frame(self) -> "pandas.DataFrame":
        """A row for every rank: its memory and its time, by part."""
        return _frame({"rank": one.rank, "stage": one.stage, "peak_memory_bytes": one.peak_memory_bytes,
                       **{f"{part}_bytes": size for part, size in one.memory_bytes.items()},
                       **{f"{part}_s": seconds for part, seconds in one.breakdown_s.items()}} for one in self.ranks)


@dataclass(frozen=True)
class Explanation:
    """What limits a plan; with `why_not`, what rules another one out."""

    sentences: list[str]
    verdict: Optional[str]  #: of why-not: same, rule, memory, slower, faster
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "Explanation":
        return Explanation(sentences=json["sentences"], verdict=json.get("verdict"), json=json)


@dataclass(frozen=True)
class Comparison:
    """Plans side by side."""

    plans: list[Json]
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "Comparison":
        return Comparison(plans=json["plans"], json=json)

    def to_frame(self) -> "pandas.DataFrame":
        return _frame(self.plans)


@dataclass(frozen=True)
class Export:
    """A launch file for another trainer."""

    trainer: str
    form: str
    text: str
    not_expressed: list[Json]
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "Export":
        return Export(trainer=json["trainer"], form=json["form"], text=json["text"],
                      not_expressed=json["not_expressed"], json=json)


@dataclass(frozen=True)
class ValidationRow:
    """One case, predicted and measured."""

    case: str
    source: str
    hardware: str
    measured_iteration_s: Optional[float]
    predicted_iteration_s: Optional[float]
    error: Optional[float]  #: predicted / measured - 1
    unsupported: Optional[str]
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "ValidationRow":
        return ValidationRow(case=json["case"], source=json["source"], hardware=json["hardware"],
                             measured_iteration_s=json["measured_iteration_s"],
                             predicted_iteration_s=json["predicted_iteration_s"], error=json["error"],
                             unsupported=json["unsupported"], json=json)


@dataclass(frozen=True)
class Validation:
    """Predictions against measurements."""

    rows: Table[ValidationRow]
    groups: list[Json]
    json: Json = field(repr=False, default_factory=dict)

    @staticmethod
    def from_json(json: Json) -> "Validation":
        return Validation(rows=Table(ValidationRow.from_json(row) for row in json["rows"]), groups=json["groups"],
                          json=json)

    def to_frame(self) -> "pandas.DataFrame":
        return self.rows.to_frame()


@dataclass(frozen=True)
class ModelSummary:
    """A shipped model."""

    name: str
    parameters: int
    active_parameters: int
    layers: int
    hidden: int
    heads: int
    vocab: int
    max_sequence: int
    flops_per_token: float

    @staticmethod
    def from_json(json: Json) -> "ModelSummary":
        return ModelSummary(**{f.name: json[f.name] for f in dataclasses.fields(ModelSummary)})


@dataclass(frozen=True)
class ProfileSummary:
    """A shipped node."""

    name: str
    device: str
    devices: int
    memory_bytes: int  #: of a device
    adapters: int
    network_bandwidth_bytes_per_s: float  #: of an adapter

    @staticmethod
    def from_json(json: Json) -> "ProfileSummary":
        return ProfileSummary(**{f.name: json[f.name] for f in dataclasses.fields(ProfileSummary)})
