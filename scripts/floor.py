#!/usr/bin/env python3
"""What is left between restarts of identical servers: the standard deviation of block values.

    deltabench compare postgres:18 postgres:18 --same-target --quick --fixed --no-pilot --json aa1.json
    scripts/floor.py aa1.json aa2.json ...

Takes JSON reports of A/A runs (the same cells in all of them). For each cell it prints the standard deviation, over
restart blocks and runs, of the log-ratio candidate / base in percent, with its 90 % interval (chi-square, normal
approximation of Wilson and Hilferty), and the half-width of a 95 % interval after 14 blocks that follows from it.
"""
import json
import math
import statistics
import sys

Z90 = 1.6448536269514722
T13 = 2.160368656461013  # 97.5 % point of Student's t, 13 degrees of freedom


def chi_square(p_z, freedom):
    """Quantile of chi-square at the normal quantile p_z (Wilson and Hilferty, 1931)."""
    part = 2.0 / (9.0 * freedom)
    return freedom * (1.0 - part + p_z * math.sqrt(part)) ** 3


def main(paths):
    if not paths:
        sys.exit(__doc__)
    cells = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        if report.get("format") != "deltabench.report":
            sys.exit(f"error: {path} is no JSON report of deltabench")
        for cell in report["cells"]:
            of = cells.setdefault((cell["workload"], cell["clients"]), {})
            for metric in ("throughput", "server_cpu_us_per_op"):
                ratios = cell["metrics"].get(metric, {}).get("block_ratios", [])
                logs = [100.0 * math.log(ratio) for ratio in ratios]
                # Each run has an offset of its own (its load); what is between its restarts is around it.
                centre = statistics.fmean(logs) if logs else 0.0
                of.setdefault(metric, []).append([log - centre for log in logs])
    print("| cell | clients | blocks | sd of throughput % [90 %] | sd of CPU/op % [90 %] | ± after 14 blocks: throughput, CPU/op |")
    print("|---|---|---|---|---|---|")
    for (workload, clients), metrics in sorted(cells.items()):
        row, widths, blocks = [], [], 0
        for metric in ("throughput", "server_cpu_us_per_op"):
            runs = metrics.get(metric, [])
            blocks = max(blocks, sum(map(len, runs)))
            freedom = sum(len(run) - 1 for run in runs if run)
            if freedom < 1:
                row.append("not known")
                widths.append("-")
                continue
            sd = math.sqrt(sum(x * x for run in runs for x in run) / freedom)
            low = sd * math.sqrt(freedom / chi_square(Z90, freedom))
            high = sd * math.sqrt(freedom / chi_square(-Z90, freedom))
            row.append(f"{sd:.2f} [{low:.2f}, {high:.2f}]")
            widths.append(f"{T13 * sd / math.sqrt(14):.2f}")
        print(f"| {workload} | {clients} | {blocks} | {' | '.join(row)} | {', '.join(widths)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
