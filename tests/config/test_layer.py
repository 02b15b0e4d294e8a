"""A setting knows everything that was written for it, with its lines."""

from __future__ import annotations

from netsandbox.config.layer import Layer, Setting


def test_a_setting_lists_its_parts_and_then_its_empty_lists() -> None:
    setting = Setting(("a", "b"), (("a", "f:1"), ("b", "f:2")), ("f:3",))
    assert setting.written == (("a", "f:1"), ("b", "f:2"), ([], "f:3"))
    assert setting.origin == "f:1"


def test_a_setting_that_is_only_an_empty_list_has_an_origin_too() -> None:
    assert Setting((), (), ("f:7",)).origin == "f:7"


def test_a_layer_may_open_something_unless_it_is_untrusted() -> None:
    assert Layer("f", {}).trusted
