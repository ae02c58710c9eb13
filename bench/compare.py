"""Time the workloads, alone or against another module measured in turn; see ./run bench --help."""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

WORKLOADS = Path(__file__).with_name("workloads.py")


def measure(python, module, options):
    command = [python, str(WORKLOADS), module]
    command += ["--threads", str(options.threads), "--budget", str(options.budget / options.rounds)]
    if options.group:
        command += ["--group", options.group]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"{module} could not be measured with {python} (see above)")
    return json.loads(run.stdout)


def smallest(old, new):
    """Per workload the better of two runs."""
    return {
        name: min((v for v in (old.get(name), new.get(name)) if v is not None), default=None)
        for name in {**old, **new}
    }


def shown(seconds):
    if seconds is None:
        return "-"
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--group")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=0.25)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    ours, theirs = {}, {}
    for _ in range(options.rounds):
        # In turn, so that a slow minute of the machine meets both.
        ours = smallest(ours, measure(sys.executable, "lamina", options))
        if options.against:
            theirs = smallest(theirs, measure(options.python, options.against, options))
    ratios = {}
    head = f"{'':28}{'lamina':>12}"
    print(head + (f"{options.against:>12}{'times faster':>14}" if options.against else ""))
    for name, seconds in ours.items():
        line = f"{name:28}{shown(seconds):>12}"
        if options.against:
            other = theirs.get(name)
            line += f"{shown(other):>12}"
            if seconds and other:
                ratios.setdefault(name.split("/")[0], []).append(other / seconds)
                line += f"{other / seconds:>14.2f}"
        print(line)
    for name, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{name}: geometric mean {mean:.2f}, lowest {min(values):.2f}")


if __name__ == "__main__":
    main()
