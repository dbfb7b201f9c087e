"""What the program refuses or fails at, by its exit code."""

from __future__ import annotations


class TriviumError(Exception):
    """The program ended with another exit code than 0."""

    def __init__(self, message: str, exit_code: int, output: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.output = output  #: what it had written until then: with NoPlanError the JSON of the search


class RunError(TriviumError):
    """Exit code 1: it failed while it ran."""


class UsageError(TriviumError):
    """Exit code 2: options that are unknown or contradict each other."""


class InputError(TriviumError):
    """Exit code 3: a file or a name that is wrong."""


class NoPlanError(TriviumError):
    """Exit code 4: the plan cannot run, or no plan fits."""


class HardwareError(TriviumError):
    """Exit code 5: hardware, driver or library is missing."""


_BY_CODE = {1: RunError, 2: UsageError, 3: InputError, 4: NoPlanError, 5: HardwareError}


def error_of(exit_code: int, stderr: str, output: str) -> TriviumError:
    """The exception for an exit code, with the line of stderr that says why."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("error: ")]
    message = said[-1][len("error: "):] if said else (lines[-1] if lines else f"trivium ended with {exit_code}")
    return _BY_CODE.get(exit_code, TriviumError)(message, exit_code, output)
