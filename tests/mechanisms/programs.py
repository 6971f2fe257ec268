"""A well-behaved external program, and the ways in which one can fail; run as `python programs.py WAY`."""

import json
import os
import random
import sys
import time


def main() -> None:
    way = sys.argv[1]
    request = json.loads(sys.stdin.readline())
    data, runs, seed = request["data"], request["runs"], request["seed"]
    draw = random.Random(seed)
    if way == "noisy":
        for _ in range(runs):
            print(json.dumps({"count": len(data) + draw.expovariate(1.0) - draw.expovariate(1.0), "ok": True}))
    elif way == "leaky":
        for _ in range(runs):
            print(json.dumps([len(data), None, "text", float("inf"), draw.random()]))
    elif way == "short":
        print("\n".join(["1"] * (runs - 1)))
    elif way == "long":
        print("\n".join(["1"] * (runs + 1)))
    elif way == "not json":
        print("\n".join(["0.5"] * (runs - 1) + ["half"]))
    elif way == "binary":
        sys.stdout.buffer.write(b"\xff\n" * runs)
    elif way == "deep":
        print("\n".join(["1"] * (runs - 1) + ["[" * 100_000]))
    elif way == "exits":
        print("first line", "last words", sep="\n", file=sys.stderr)
        sys.exit(3)
    elif way == "killed":
        os.kill(os.getpid(), 9)
    elif way == "closes stdin":
        sys.stdin.close()
        print("\n".join(["1"] * runs))
    elif way == "hangs":
        time.sleep(600)
    elif way == "hangs on one":
        if len(data) == 1:
            time.sleep(600)
        print("\n".join(["1"] * runs))


if __name__ == "__main__":
    main()
