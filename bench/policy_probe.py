"""Loads a policy of N rules and times decisions; runs on the installed product. Usage: policy_probe.py N"""

from __future__ import annotations

import gc
import json
import sys
import time
from timeit import repeat

from netsandbox.policy.names import canonical
from netsandbox.policy.policy import Policy
from netsandbox.policy.verdict import TCP, Request

DECISIONS = 4_000
TRIES = 10  # the quickest try is used, because other load can only slow a try


def rules(count: int) -> list[str]:
    """Three exact hosts in many zones to one wildcard with a port, as lists of this kind are."""
    return [f"*.w{n}.example.org:8443" if n % 4 == 0 else f"host-{n}.zone{n % 977}.example.com" for n in range(count)]


def decide_microseconds(policy: Policy, host: str, port: int) -> float:
    request = Request(canonical(host), port, TCP)
    decide = policy.decide
    return min(repeat(lambda: decide(request), number=DECISIONS, repeat=TRIES)) / DECISIONS * 1e6


def main() -> None:
    texts = rules(int(sys.argv[1]))
    gc.disable()  # as the product does until its doors open
    began = time.process_time()
    policy = Policy(texts)
    policy.decide(Request(canonical("example.com"), 443, TCP))  # its tables are built at the first decision
    loaded = time.process_time() - began
    gc.enable()
    questions = {
        "exact": ("host-5.zone5.example.com", 443),
        "wildcard": ("a.b.w4.example.org", 8443),
        "denied": ("nowhere.zone5.example.com", 443),
    }
    costs = {kind: decide_microseconds(policy, *question) for kind, question in questions.items()}
    print(json.dumps({"load_s": loaded, "decide_us": costs}))


if __name__ == "__main__":
    main()
