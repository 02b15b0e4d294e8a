"""After a failure, variables are named that the command may have wanted."""

from __future__ import annotations

from netsandbox.policy.missed_variables import missed
from netsandbox.policy.variables import Layer


def test_a_failed_command_may_have_missed_any_variable_that_was_withheld() -> None:
    withheld = ["AWS_PROFILE", "DB_URL", "GITHUB_TOKEN", "LD_PRELOAD", "SECRET_KEY", "SSH_AUTH_SOCK", "KUBECONFIG"]
    found = ["AWS_PROFILE", "DB_URL", "GITHUB_TOKEN", "SECRET_KEY", "KUBECONFIG"]
    assert missed(withheld, ["python", "manage.py"]) == found
    assert missed(withheld, ["python"], [Layer(denied=("DB_*",)), Layer(passed=("X",))]) == [
        name for name in found if name != "DB_URL"
    ]
    assert missed(withheld, ["/usr/bin/github", "x"]) == sorted(found, key=lambda name: name != "GITHUB_TOKEN")
