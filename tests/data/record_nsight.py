"""Records tests/data/nsight_cpu.sqlite: eight iterations of a small transformer on one core, with NVTX ranges.

nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none -o nsight_cpu python record_nsight.py
nsys export --type sqlite nsight_cpu.nsys-rep
nsys export --type sqlite --lazy=false -o nsight_cpu_all_tables.sqlite nsight_cpu.nsys-rep
python record_nsight.py cut nsight_cpu.sqlite nsight_cpu_all_tables.sqlite

The second export has every table, also those without a row. The last line leaves the tables named below, as nsys wrote
them, and takes out the others, the strings that they name and the paths and the name of the machine.
"""

import sqlite3
import sys

VOCABULARY, SEQUENCE, HIDDEN, HEADS, BATCH, ITERATIONS = 97, 32, 48, 4, 8, 8
KEPT = ("ANALYSIS_DETAILS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME",
        "EXPORT_META_DATA", "NVTX_EVENTS", "PROFILER_OVERHEAD", "StringIds", "TARGET_INFO_GPU",
        "TARGET_INFO_SESSION_START_TIME")


def train():
    import nvtx  # before 0.2.11: nsys 2022.4 sees nothing of later ones
    import torch
    from torch import nn

    torch.set_num_threads(1)
    layers = (nn.TransformerEncoderLayer(HIDDEN, HEADS, 4 * HIDDEN, 0.0, batch_first=True) for _ in range(2))
    model = nn.Sequential(nn.Embedding(VOCABULARY, HIDDEN), *layers, nn.Linear(HIDDEN, VOCABULARY))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for i in range(ITERATIONS):
        tokens = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1))
        with nvtx.annotate(f"iteration {i}"):
            with nvtx.annotate("forward"):
                logits = model(tokens[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            with nvtx.annotate("backward"):
                loss.backward()
            with nvtx.annotate("optimizer"):
                optimizer.step()
                optimizer.zero_grad()


def cut(file):
    database = sqlite3.connect(file)
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if table not in KEPT:
            database.execute(f"DROP TABLE {table}")
    database.execute("DELETE FROM StringIds WHERE id NOT IN (SELECT textId FROM NVTX_EVENTS WHERE textId NOT NULL) "
                     "AND id NOT IN (SELECT nameId FROM PROFILER_OVERHEAD)")
    database.execute("DELETE FROM EXPORT_META_DATA WHERE name LIKE '%PATH%' OR name LIKE '%HOST%'")
    database.commit()
    database.execute("VACUUM")


if sys.argv[1:2] == ["cut"]:
    for each in sys.argv[2:]:
        cut(each)
else:
    train()
