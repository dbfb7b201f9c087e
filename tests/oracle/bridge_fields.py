"""bridge_fields.py BRIDGE MEGATRON FILE: every field that a recipe sets is one of Megatron-Bridge's.

Python takes any name: a field that does not exist would be set in silence. The classes are read in checkouts of Megatron-Bridge
and Megatron-LM, not imported: they want libraries that install on machines with a GPU alone. Prints how many fields
were found.
"""

import ast
import pathlib
import sys

CLASSES = {"model": "GPTModelProvider", "ddp": "DistributedDataParallelConfig", "optimizer": "OptimizerConfig",
           "train": "TrainingConfig", "dataset": "GPTDatasetConfig", "rng": "RNGConfig", "scheduler": "SchedulerConfig",
           "checkpoint": "CheckpointConfig", "tokenizer": "TokenizerConfig", "dist": "DistributedInitConfig"}
bridge, megatron, recipe = map(pathlib.Path, sys.argv[1:])
bases, fields, called = {}, {}, {}
for root in (bridge / "src" / "megatron" / "bridge", megatron / "megatron" / "core", megatron / "megatron" / "training"):
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                called.update((item.asname, item.name) for item in node.names if item.asname)
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(ast.unparse(base).split(".")[-1] for base in node.bases)
                fields.setdefault(node.name, set()).update(
                    item.target.id for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name))


def all_fields(name, seen):
    name = name if name in fields else called.get(name)
    if name in seen or name not in fields:
        return set()
    seen.add(name)
    return fields[name].union(*(all_fields(base, seen) for base in bases[name]))


tree = ast.parse(recipe.read_text(encoding="utf-8"))
whole, count = all_fields("ConfigContainer", set()), 0
for node in ast.walk(tree):
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if not isinstance(target, ast.Attribute):
        continue
    holder = ast.unparse(target.value)
    known = whole if holder == "cfg" else all_fields(CLASSES[holder.removeprefix("cfg.")], set())
    if target.attr not in known:
        sys.exit(f"{holder} has no field {target.attr}")
    count += 1
for name in (alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in
             ((node.module, item.name) for item in node.names)):
    file = (bridge / "src" / pathlib.Path(*name[0].split("."))).with_suffix(".py")
    if f" {name[1]}" not in file.read_text(encoding="utf-8"):
        sys.exit(f"{name[0]} has no {name[1]}")
print(count)
