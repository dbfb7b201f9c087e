"""Cuts traces of job.py to what tests need: cut.py IN OUT [--steps N] writes the first N iterations without views."""

import argparse
import gzip
import json

from train import VIEWS

KEPT = ("Input Dims", "External id")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("read")
    parser.add_argument("write")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    with gzip.open(options.read) as file:
        trace = json.load(file)
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") != "Trace" and e["name"] not in VIEWS]
    steps = sorted((e for e in events if e["name"].startswith("ProfilerStep#")), key=lambda e: e["ts"])[:options.steps]
    begin, end = steps[0]["ts"], steps[-1]["ts"] + steps[-1]["dur"]
    threads = {t: i for i, t in enumerate(sorted({str(e["tid"]) for e in events}))}
    kept = []
    for event in events:
        if event["ts"] < begin or event["ts"] + event["dur"] > end + 1:
            continue
        given = event.get("args", {})
        args = {k: given[k] for k in KEPT if given.get(k)}
        if "c10d" in event["name"]:
            args |= {k: given[k] for k in ("Concrete Inputs", "Input type") if k in given}
        kept.append({"ph": "X", "cat": event["cat"], "name": event["name"], "tid": threads[str(event["tid"])],
                     "ts": round(event["ts"] - begin, 3), "dur": round(event["dur"], 3), "args": args})
    head = {k: trace[k] for k in ("schemaVersion", "record_shapes", "distributedInfo") if k in trace}
    # One host: its clock is all ranks' clock. Only differences of it matter.
    head |= {"host_name": "host", "baseTimeNanoseconds": 10**12 + int((trace["baseTimeNanoseconds"] / 1000 + begin) % 10**9 * 1000)}
    with open(options.write, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
        packed.write(json.dumps(head | {"traceEvents": kept}, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
