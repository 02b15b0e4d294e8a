"""What `apply` plans: conflicts with the host, protected names, and the order of the steps."""

from __future__ import annotations

import pytest
from hypothesis import given

from netsandbox.policy import overlay_plan
from netsandbox.policy.overlay_changes import FILE, FOLDER, LINK, OTHER, WHITEOUT, Node, above, compare
from netsandbox.policy.overlay_plan import REMOVE, WRITE, Plan, Step, Trees, mergeable, plan
from netsandbox.policy.shown_files import PROTECTED
from tests.policy.test_overlay_changes import Tree, hosts, same_files, uppers

SINCE = 1000
BEFORE, AFTER = SINCE - 1, SINCE + 1
NEW = Node(FILE, 0o644, 5)


def old(kind: str = FILE, changed: int = BEFORE, modified: int | None = None) -> Node:
    return Node(kind, 0o755 if kind == FOLDER else 0o644, 3, 7, changed, changed if modified is None else modified)


def planned(upper: Tree, host: Tree, *named: str, force: bool = False, kept: tuple[str, ...] = ()) -> Plan:
    trees = Trees(upper, {"": old(FOLDER), **host}, SINCE, kept)
    return plan(compare(upper, trees.host, frozenset()), trees, named, force=force)


@given(uppers, hosts)
def test_the_steps_can_be_carried_out_one_after_the_other(upper: Tree, host: Tree) -> None:
    """Nothing is removed that holds something, nothing is written into what is not a folder, or over one."""
    now = {path: node.kind for path, node in host.items()}
    trees = Trees(upper, host, SINCE)
    for step in plan(compare(upper, host, same_files(upper, host)), trees).steps:
        if step.action == REMOVE:
            assert not any(above(path) == step.path for path in now)
            del now[step.path]
        else:
            assert "/" not in step.path or now[above(step.path)] == FOLDER
            kind = upper[step.path].kind
            assert now.get(step.path, kind) == kind or FOLDER not in (now[step.path], kind)
            now[step.path] = kind


def test_a_file_that_the_host_changed_is_a_conflict() -> None:
    assert planned({"a": NEW}, {"a": old(changed=BEFORE)}).conflicts == ()
    for changed in (SINCE, AFTER):
        assert planned({"a": NEW}, {"a": old(changed=changed)}).conflicts == (("a", "changed on the host"),)
        forced = planned({"a": NEW}, {"a": old(changed=changed)}, force=True)
        assert (forced.conflicts, forced.steps) == ((), (Step("a", WRITE),))


def test_a_file_that_the_host_made_too_is_a_conflict() -> None:
    assert planned({"a": NEW}, {"a": old(LINK, AFTER)}).conflicts
    assert not planned({"a": NEW}, {}).conflicts


def test_a_removed_folder_is_a_conflict_if_the_host_changed_something_in_it() -> None:
    gone = {"d": Node(WHITEOUT)}
    assert not planned(gone, {"d": old(FOLDER, AFTER), "d/x": old()}).conflicts  # the host removed another file of it
    assert planned(gone, {"d": old(FOLDER), "d/x": old(changed=AFTER)}).conflicts == (("d/x", "changed on the host"),)
    assert planned(gone, {"d": old(FOLDER, AFTER, BEFORE), "d/x": old()}).conflicts  # it was moved there
    steps = planned(gone, {"d": old(FOLDER), "d/x": old()}).steps
    assert steps == (Step("d/x", REMOVE), Step("d", REMOVE))


def test_a_copied_file_that_the_host_removed_is_a_conflict() -> None:
    copied = {"d": Node(FOLDER, 0o755), "d/a": Node(FILE, 0o644, 5, copied=True)}
    assert planned(copied, {"d": old(FOLDER, AFTER)}).conflicts == (("d/a", "was removed on the host"),)
    assert not planned(copied, {"d": old(FOLDER, BEFORE)}).conflicts  # the session moved it there
    made = {**copied, "d/a": NEW}
    assert not planned(made, {"d": old(FOLDER, AFTER)}).conflicts


def test_a_folder_that_the_host_moved_is_a_conflict() -> None:
    upper = {"d": Node(FOLDER, 0o755), "d/a": NEW}
    assert not planned(upper, {"d": old(FOLDER, AFTER), "d/a": old()}).conflicts
    moved = planned(upper, {"d": old(FOLDER, AFTER, BEFORE), "d/a": old()})
    assert moved.conflicts == (("d", "was moved or changed on the host"),)


def test_faults_refuse_whatever_is_named_in_them() -> None:
    upper = {"d": Node(FOLDER, 0o755, fault="why"), "d/a": NEW, "b": NEW}
    for named in ((), ("d",), ("d/a",), ("",)):
        assert planned(upper, {}, *named).faults == (("d", "why"),)
    assert planned(upper, {}, "b").faults == ()


def test_special_files_are_left_out() -> None:
    found = planned({"s": Node(OTHER), "a": NEW}, {})
    assert (found.special, found.steps) == (("s",), (Step("a", WRITE),))


def test_what_is_named_brings_its_new_folders_and_nothing_else() -> None:
    upper = {"d": Node(FOLDER, 0o755), "d/e": Node(FOLDER, 0o755), "d/e/a": NEW, "d/b": NEW}
    assert planned(upper, {}, "d/e/a").steps == (Step("d", WRITE), Step("d/e", WRITE), Step("d/e/a", WRITE))
    assert len(planned(upper, {}, "").steps) == len(planned(upper, {}).steps) == 4
    assert planned(upper, {}, "d/bb").steps == ()


REPOSITORY = {
    path: old(FOLDER)
    for path in (".git", ".git/hooks", ".git/refs", ".git/refs/heads", ".git/objects", ".git/modules", ".git/modules/m")
}


def folders_of(path: str) -> Tree:
    parts = path.split("/")[:-1]
    return {"/".join(parts[: at + 1]): Node(FOLDER, 0o755) for at in range(len(parts))}


@pytest.mark.parametrize(
    ("path", "root"),
    [
        *((name, name) for name in PROTECTED),
        (".vscode/tasks.json", ".vscode"),
        (".VSCode/tasks.json", ".VSCode"),  # some disks ignore case
        ("s\u0130b/.GIT/Hooks/x", "s\u0130b/.GIT"),
        (".git/HOOKS/x", ".git/HOOKS"),
        ("packages/web/.envrc", "packages/web/.envrc"),
        (".git/hooks/pre-commit", ".git/hooks"),
        (".git/rebase-merge/git-rebase-todo", ".git/rebase-merge"),
        (".git/modules/m/sequencer/opts", ".git/modules/m/sequencer"),
        (".git/config", ".git/config"),
        (".git/config.worktree", ".git/config.worktree"),
        (".git/commondir", ".git/commondir"),
        (".git/modules/m/config", ".git/modules/m/config"),
        (".git/modules/m/hooks/post-checkout", ".git/modules/m/hooks"),
        (".git/worktrees/w/gitdir", ".git/worktrees/w/gitdir"),
        ("sub/.git", "sub/.git"),  # a file that names a git directory
        ("sub/.git/HEAD", "sub/.git"),  # a new repository
    ],
)
def test_protected_paths_must_be_named_themselves(path: str, root: str) -> None:
    upper = {**folders_of(path), path: NEW}
    for named in ((), ("",), (above(root),) if above(root) else ("",)):
        found = planned(upper, REPOSITORY, *named)
        assert found.protected == (root,)
        assert Step(path, WRITE) not in found.steps
    assert Step(path, WRITE) in planned(upper, REPOSITORY, root).steps
    assert Step(path, WRITE) in planned(upper, REPOSITORY, "", path).steps


def test_an_operation_of_git_that_is_over_is_removed() -> None:
    todo = ".git/rebase-merge/git-rebase-todo"
    host = {**REPOSITORY, ".git/rebase-merge": old(FOLDER), todo: old()}
    over = planned({".git": Node(FOLDER, 0o755), ".git/rebase-merge": Node(WHITEOUT, 0)}, host)
    assert over.protected == ()
    assert Step(todo, REMOVE) in over.steps
    part = planned({**folders_of(todo), todo: Node(WHITEOUT, 0)}, host)
    assert part.protected == (".git/rebase-merge",)


@pytest.mark.parametrize(
    "path",
    [
        ".git/index",
        ".git/refs/heads/config",
        ".git/refs/heads/hooks",
        ".git/refs/heads/sequencer",
        ".git/objects/ab/cd",
        ".vscodex",
        "config",
        "hooks",
    ],
)
def test_what_nothing_obeys_is_applied(path: str) -> None:
    found = planned({**folders_of(path), path: NEW}, REPOSITORY)
    assert found.protected == ()
    assert Step(path, WRITE) in found.steps


def test_what_the_session_could_not_change_is_protected_whatever_it_is_called() -> None:
    assert planned({"githooks": Node(FOLDER, 0o755), "githooks/x": NEW}, {}, kept=("githooks",)).protected == (
        "githooks",
    )


@pytest.mark.parametrize(
    "path",
    [
        ".claude",
        ".hg",
        "sub/.config",
        ".git/modules",
        ".git/modules/m",
        ".git/worktrees",
        ".git/modules/m/refs",
        "tools",
    ],
)
def test_a_link_in_the_place_of_a_folder_above_a_protected_name_must_be_named(path: str) -> None:
    """What it leads to would be obeyed under the protected name."""
    upper = {**folders_of(path), path: Node(LINK, 0o777, target="../evil")}
    found = planned(upper, REPOSITORY, "", kept=("tools/hooks",))
    assert found.protected == (path,)
    assert Step(path, WRITE) not in found.steps
    assert Step(path, WRITE) in planned(upper, REPOSITORY, path, kept=("tools/hooks",)).steps
    plain = planned({**folders_of(path), path: Node(FOLDER, 0o755)}, {}, "", kept=("tools/hooks",))
    assert plain.protected == () or path.startswith(".git")


def test_a_link_elsewhere_needs_no_name() -> None:
    for path in ("claude", "config", "toolsx", ".git/refs/heads/link", "node_modules/.bin/x"):
        found = planned({**folders_of(path), path: Node(LINK, 0o777, target="x")}, REPOSITORY, kept=("tools/hooks",))
        assert found.protected == ()


def test_a_git_directory_without_objects_is_protected() -> None:
    """As a worktree has one: `commondir` names the other."""
    upper = {"evil": Node(FOLDER, 0o755), "evil/HEAD": NEW, "evil/commondir": NEW, "evil/config": NEW}
    assert set(planned(upper, {}).protected) == {"evil/commondir", "evil/config"}


@pytest.mark.parametrize("folder", ["", "evil/"])
@pytest.mark.parametrize("name", ["config", "hooks", "commondir"])
def test_a_head_that_makes_a_repository_of_what_the_host_has_must_be_named(folder: str, name: str) -> None:
    """What git obeys may have come by an earlier `apply`, when it was no repository yet."""
    upper, host = {f"{folder}HEAD": NEW}, {f"{folder}{name}": old(), **folders_of(f"{folder}{name}")}
    upper |= folders_of(f"{folder}HEAD")
    assert planned(upper, host).protected == (f"{folder}HEAD",)
    assert planned(upper, {f"{folder}description": old()}).protected == ()
    assert planned(upper, {**host, f"{folder}HEAD": old()}).protected == ()


def test_many_changes_are_planned_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session decides how many there are."""
    passes: list[int] = []
    real = overlay_plan._with_folders
    monkeypatch.setattr(overlay_plan, "_with_folders", lambda *both: passes.append(1) or real(*both))
    assert len(planned({f"f{number}": NEW for number in range(50)}, {}).steps) == 50
    assert passes == [1]


def test_a_bare_repository_is_protected() -> None:
    host = {"bare": old(FOLDER), "bare/HEAD": old(), "bare/objects": old(FOLDER)}
    upper = {"bare": Node(FOLDER, 0o755), "bare/config": NEW, "bare/description": NEW}
    found = planned(upper, host)
    assert found.protected == ("bare/config",)
    assert found.steps == (Step("bare/description", WRITE),)


def test_a_repository_is_not_removed_by_halves() -> None:
    host = {**REPOSITORY, ".git/config": old(), ".git/index": old()}
    found = planned({".git": Node(WHITEOUT)}, host)
    assert (found.steps, found.protected) == ((), (".git",))
    inner = {"sub": old(FOLDER), "sub/.git": old(FOLDER), "sub/.git/config": old(), "sub/a": old()}
    whole = planned({"sub": Node(WHITEOUT)}, inner)
    assert whole.protected == ()
    assert whole.steps[-1] == Step("sub", REMOVE)


def test_worktrees_of_others_are_not_pruned() -> None:
    """A session does not see them, so its git takes them for gone."""
    host = {
        **REPOSITORY,
        ".git/worktrees": old(FOLDER),
        ".git/worktrees/w": old(FOLDER),
        ".git/worktrees/w/HEAD": old(),
    }
    found = planned({".git": Node(FOLDER, 0o755), ".git/worktrees": Node(WHITEOUT)}, host)
    assert Step(".git/worktrees/w/HEAD", REMOVE) not in found.steps
    found = planned({".git/worktrees": Node(FOLDER, 0o755), ".git/worktrees/w": Node(WHITEOUT)}, host)
    assert found.protected == (".git/worktrees/w",)


def test_configuration_files_of_git_in_both_layers_can_be_merged() -> None:
    trees = Trees({".git/config": NEW, "x/config": NEW}, {".git/config": old()}, SINCE)
    assert mergeable((".git/config", "x/config", ".git/hooks"), trees) == [".git/config"]
    assert mergeable((".git/config",), Trees({".git/config": Node(LINK)}, {".git/config": old()}, SINCE)) == []
