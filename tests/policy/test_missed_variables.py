"""After a failure, variables are named that the command may have wanted, and not those that every shell has."""

from __future__ import annotations

from netsandbox.policy.missed_variables import missed
from netsandbox.policy.variables import Layer


def test_a_failed_command_may_have_missed_what_applications_read() -> None:
    withheld = ["AWS_PROFILE", "DB_URL", "GITHUB_TOKEN", "LD_PRELOAD", "SECRET_KEY", "SSH_AUTH_SOCK", "KUBECONFIG"]
    assert missed(withheld, ["python", "manage.py"]) == ["DB_URL", "SECRET_KEY"]
    assert missed(withheld, ["python"], [Layer(denied=("DB_*",)), Layer(passed=("X",))]) == ["SECRET_KEY"]
    assert missed(withheld, ["/usr/bin/aws", "s3", "ls"]) == ["AWS_PROFILE", "DB_URL", "SECRET_KEY"]
