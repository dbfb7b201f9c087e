"""What the checker says of an exported file."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Finding:
    """A reason why a launch fails, or would run something else than the plan. `rule` is one word that tests and tables
    name, `text` says what the file has and what the trainer asks for."""

    rule: str
    text: str

    def __str__(self):
        return f"{self.rule}: {self.text}"


class Findings(list):
    def require(self, holds, rule, text):
        """Adds a finding unless `holds`; returns whether it held."""
        if not holds:
            self.append(Finding(rule, text))
        return bool(holds)

    def divides(self, divisor, number, rule, text):
        return self.require(divisor and number % divisor == 0, rule, f"{text}: {number} % {divisor} is not 0")
