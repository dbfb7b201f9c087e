"""Reads what `trivium export` wrote as bash, Slurm and the trainers would: lines of #SBATCH, variables of the
environment, files in here-documents, the command that starts processes, and the trainer's own options."""

import ast
import json
import re
import shlex
import tomllib

LAUNCHERS = ("torchrun", "deepspeed")


class Unreadable(Exception):
    pass


def options_of(words):
    """--name VALUE..., --name=VALUE and --name of a command line: {name: [values]}; underscores are dashes."""
    found, name = {}, None
    for word in words:
        # A negative number is a value, not an option.
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.lstrip("-").partition("=")
            name = name.replace("_", "-")
            found.setdefault(name, [])
            if equals:
                found[name].append(value)
        elif name is not None:
            found[name].append(word)
    return found


class Exported:
    """An exported file: `sbatch` {option: value}, `environment` {name: value or None where it is unset}, `files`
    {name: text}, `launch` {option: values} of torchrun or deepspeed, `program` and its `arguments`."""

    def __init__(self, text):
        self.text = text
        self.sbatch = self._sbatch_lines(text)
        self.has_sbatch = bool(self.sbatch)
        rest, self.files = self._without_here_documents(text)
        self.environment = self._environment(rest)
        self.launcher, self.launch, self.program, self.arguments = self._command(rest)
        self.python = text if re.search(r"^(from|import) ", rest, re.M) else None

    @staticmethod
    def _sbatch_lines(text):
        words = [word for line in re.findall(r"^#SBATCH\s+(.*)$", text, re.M) for word in shlex.split(line)]
        return {name: values[0] if values else "" for name, values in options_of(words).items()}

    @staticmethod
    def _without_here_documents(text):
        files = {}

        def take(match):
            files[match["name"]] = match["body"]
            return ""

        pattern = r"^cat\s*>\s*(?P<name>\S+)\s*<<'?(?P<mark>\w+)'?\n(?P<body>.*?)^(?P=mark)\n"
        rest = re.sub(pattern, take, text, flags=re.M | re.S)
        for line, name in re.findall(r"^echo\s+(.*?)\s*>{1,2}\s*(\S+)$", rest, re.M):
            files[name] = files.get(name, "") + " ".join(shlex.split(line)) + "\n"
        return rest, files

    @staticmethod
    def _environment(text):
        found = {}
        for line in re.findall(r"^\s*(?:export|unset)\s.*$", text, re.M):
            verb, *words = shlex.split(line)
            for word in words:
                name, _, value = word.partition("=")
                found[name] = value if verb == "export" else None
        # Python: os.environ["NAME"] = "VALUE", os.environ.setdefault("NAME", "VALUE")
        pattern = r"""^os\.environ(?:\[|\.setdefault\()["'](\w+)["'](?:\] *= *|, *)["']([^"']*)["']"""
        found.update(re.findall(pattern, text, re.M))
        # `torchrun` with assignments before it, as in NAME=1 torchrun.
        for name, value in re.findall(
            r"\b([A-Z][A-Z0-9_]*)=(\S+)(?=(?: [A-Z][A-Z0-9_]*=\S+)* (?:torchrun|deepspeed)\b)", text
        ):
            found[name] = value
        return found

    @staticmethod
    def _command(text):
        joined = re.sub(r"\\\n\s*", " ", text)
        lines = [line for line in joined.splitlines() if not line.startswith("#SBATCH")]
        real = [line for line in lines if not line.startswith("#")]
        # Python files say in a comment how they are started.
        for line in real + [line.lstrip("# ") for line in lines if line.startswith("# ")]:
            launcher = next((name for name in LAUNCHERS if re.search(rf"(^|\s){name}\s+-", line)), None)
            if launcher:
                words = shlex.split(line[line.index(launcher) :].replace("THIS_FILE", "THIS_FILE.py"))
                return Exported._split(launcher, words)
        raise Unreadable("no torchrun or deepspeed command")

    @staticmethod
    def _split(launcher, words):
        end = next((at for at, word in enumerate(words) if at and (word == "-m" or word.endswith(".py"))), None)
        if end is None:
            raise Unreadable(f"{launcher} starts no program")
        program = words[end + 1] if words[end] == "-m" else words[end]
        after = words[end + 2 :] if words[end] == "-m" else words[end + 1 :]
        return launcher, options_of(words[1:end]), program, options_of(after)

    def launch_number(self, *names):
        """The number after an option of the launcher; None where it is missing."""
        for name in names:
            if self.launch.get(name):
                return int(self.launch[name][0])
        return None

    @property
    def segment(self):
        """Hosts of an NVLink domain that are filled in a row; 0 where the file does not say."""
        said = re.search(r"--segment[= ](\d+)", self.text)
        return int(said[1]) if said else 0

    def toml(self):
        name = next((name for name in self.files if name.endswith(".toml")), None)
        if name is None:
            raise Unreadable("no TOML")
        return tomllib.loads(self.files[name])

    def json(self):
        name = next((name for name in self.files if name.endswith(".json")), None)
        if name is None:
            raise Unreadable("no JSON")
        return json.loads(self.files[name])


def literal(node):
    """The value of an expression of literals, +, * and calls, which become {"": name, keyword: value}."""
    if isinstance(node, ast.Call):
        keywords = {word.arg: literal(word.value) for word in node.keywords}
        return {"": ast.unparse(node.func), **keywords}
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left, right = literal(node.left), literal(node.right)
        return left + right if isinstance(node.op, ast.Add) else left * right
    if isinstance(node, (ast.List, ast.Tuple)):
        return [literal(item) for item in node.elts]
    if isinstance(node, ast.Attribute) or isinstance(node, ast.Name):
        return ast.unparse(node)
    return ast.literal_eval(node)


def assignments(text):
    """NAME = value and holder.field = value at the top level of a Python file: {"holder.field": value}."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            try:
                found[ast.unparse(node.targets[0])] = literal(node.value)
            except ValueError:
                continue
    return found
