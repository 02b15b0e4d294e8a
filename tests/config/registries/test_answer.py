from __future__ import annotations

from netsandbox.config.registries.answer import Answer, Registry


def test_only_what_the_project_does_not_say_is_taken_unless_it_is_wanted():
    answer = Answer(
        (
            Registry("a.example:443", "A", False),
            Registry("b.example:443", "B", True),
            Registry("a.example:443", "C", True),
        ),
        (),
        (),
    )
    assert answer.patterns() == ("a.example:443",)
    assert answer.patterns(project=True) == ("a.example:443", "b.example:443")
