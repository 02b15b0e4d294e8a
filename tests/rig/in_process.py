"""A session whose supervisor runs in the process of the test, so that a test can put faults into it."""

from __future__ import annotations

from netsandbox.frozen import copy_with
from netsandbox.policy.policy import Policy
from netsandbox.session.launch import Outcome, inherited, outcome_of
from netsandbox.session.session import Session
from netsandbox.settings import Command, RunSettings


def run_here(policy: Policy, command: list[str], settings: RunSettings | None = None) -> Outcome:
    fitting = copy_with(settings or RunSettings(), mode=policy.mode, unix_sockets=policy.allow_unix_sockets)
    session = Session(fitting, sealed=False)
    return outcome_of(session, session.run(lambda: policy, Command(command, inherited(fitting))))
