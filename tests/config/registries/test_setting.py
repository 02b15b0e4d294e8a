from __future__ import annotations

from netsandbox.config.registries.setting import Setting, believed, settle, split


def word(key: str, text: str, project: bool = False) -> Setting:
    return Setting(key, text, "origin", project)


def test_the_first_word_counts():
    assert settle([word("a", "1"), word("a", "2"), word("b", "3")]) == [word("a", "1"), word("b", "3")]


def test_a_project_does_not_hide_what_the_user_says():
    said = [word("a", "1", True), word("a", "2", True), word("a", "3"), word("a", "4")]
    assert settle(said) == [word("a", "1", True), word("a", "3")]


def test_a_project_says_nothing_where_the_user_is_stronger():
    assert settle([word("a", "1"), word("a", "2", True)]) == [word("a", "1")]


def test_the_projects_word_is_not_believed():
    assert not believed([word("a", "1", True)], "a")
    assert believed([word("a", "1", True), word("a", "1")], "a")
    assert not believed([word("b", "1")], "a")


def test_words_are_split_at_blanks_and_at_what_is_given():
    assert [each.text for each in split([word("a", " x,y|z  w\n")], ",|")] == ["x", "y", "z", "w"]
    assert [each.text for each in split([word("a", "x,y z")])] == ["x,y", "z"]
