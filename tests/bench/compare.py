#!/usr/bin/env python3
"""Two results of `./dev bench --save` compared, with what the machine's own noise allows to say.

usage: compare.py merge OUT.json IN.json...     # results of several benchmark programs in one file
       compare.py OLD.json NEW.json             # a table; exit 1 where something is slower beyond noise

Needs Google Benchmark's tools (Debian: libbenchmark-tools) and SciPy. A benchmark counts as slower, or faster, where
the Mann-Whitney U test of all repetitions gives p below .01 and the medians differ by more than either run's own
spread, the distance of its quartiles over its median.
"""

import json
import statistics
import sys

SIGNIFICANT = 0.01
FEWEST = 9  # repetitions that Google Benchmark's report asks for a U test


def merge(out, names):
    whole = {"benchmarks": []}
    for name in names:
        with open(name, encoding="utf-8") as file:
            part = json.load(file)
        whole.setdefault("context", part["context"])
        whole["benchmarks"] += part["benchmarks"]
    with open(out, "w", encoding="utf-8") as file:
        json.dump(whole, file, indent=1)


def times_of(result):
    times = {}
    for run in result["benchmarks"]:
        if run.get("run_type", "iteration") == "iteration" and "real_time" in run:
            times.setdefault((run["name"], run.get("time_unit", "ns")), []).append(run["real_time"])
    return times


def spread(values):
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / statistics.median(values)


def p_values(old, new):
    sys.path.insert(0, "/usr/share/benchmark")
    from gbench import report

    found = {}
    for row in report.get_difference_report(old, new, utest=True):
        if "utest" in row and row["utest"]:
            found[row["name"]] = row["utest"]["time_pvalue"]
    return found


def rows_of(old, new, p):
    """(name, unit, median before, median now, change, noise, verdict) of every benchmark in both."""
    before, now, rows = times_of(old), times_of(new), []
    for key, values in now.items():
        if key not in before:
            continue
        name, unit = key
        noise = max(spread(before[key]), spread(values))
        medians = statistics.median(before[key]), statistics.median(values)
        change = medians[1] / medians[0] - 1
        fewest = min(len(before[key]), len(values))
        if fewest < FEWEST or name not in p:
            verdict = f"{fewest} repetitions are too few to say"
        elif p[name] < SIGNIFICANT and abs(change) > noise:
            verdict = "slower" if change > 0 else "faster"
        else:
            verdict = "within noise"
        rows.append((name, unit, *medians, change, noise, verdict))
    return rows


def same_machine(old, new):
    kept = ("host_name", "num_cpus", "mhz_per_cpu")
    return all(old["context"].get(key) == new["context"].get(key) for key in kept)


def main():
    if len(sys.argv) > 3 and sys.argv[1] == "merge":
        return merge(sys.argv[2], sys.argv[3:])
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results = []
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            results.append(json.load(file))
    rows = rows_of(*results, p_values(*results))
    if not rows:
        sys.exit("no benchmark is in both files")
    width = max(len(row[0]) for row in rows)
    print(f"{'benchmark':{width}}  {'before':>10} {'now':>10}     {'change':>8}  {'noise':>7}")
    for name, unit, before, now, change, noise, verdict in rows:
        print(f"{name:{width}}  {before:10.4g} {now:10.4g} {unit}  {100 * change:+7.1f}%  {100 * noise:6.1f}%  {verdict}")
    verdicts = [row[-1] for row in rows]
    slower, faster = verdicts.count("slower"), verdicts.count("faster")
    print(f"\n{len(rows)} benchmarks: {slower} slower, {faster} faster, {len(rows) - slower - faster} not to be told "
          f"from noise (median noise {100 * statistics.median(row[5] for row in rows):.1f} %)")
    if not same_machine(*results):
        print("the two results are of different machines, or of one at different clocks: the changes may be theirs")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
