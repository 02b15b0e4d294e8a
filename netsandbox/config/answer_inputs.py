"""Makes an answer that can be remembered: finds out what it rests on, and keeps both (see `memory`).

What it rests on is looked at before and after the answer is made: a file that changes meanwhile makes no memory.
"""

from __future__ import annotations

import marshal
import os
import time

from netsandbox.config.answer_cache import (
    CONTENT,
    GONE,
    MARK,
    SIZE_LIMIT,
    STAMP,
    THERE,
    encode,
    look,
    memory_folder,
)
from netsandbox.config.effective import effective_layers, settled
from netsandbox.config.paths import profile_folder, project_folders, repository_marks, trust_folder
from netsandbox.config.profiles.detection import anything_here
from netsandbox.config.profiles.library import Library
from netsandbox.config.profiles.profile_files import OF_PROJECTS, OURS, PROJECTS, listed, own
from netsandbox.config.profiles.selection import Wanted, detection_rules
from netsandbox.config.registries import cache
from netsandbox.errors import NetsandboxError
from netsandbox.paths import made_state_home
from netsandbox.runtime.private_file import make_room, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from netsandbox.config.answer_cache import Basis, Question
    from netsandbox.config.file_settings import FileSettings
    from netsandbox.config.layer import Layer

LASTS = 86400  # seconds: what tools say by themselves can change without a trace
MAX_FILES = 256
SOCKETS = ("$XDG_RUNTIME_DIR", "$SSH_AUTH_SOCK")  # which places of sockets may begin with


def remembered(question: Question) -> FileSettings | None:
    """The answer, kept for the next time."""
    before = tuple(_contents(question))
    layers = effective_layers(question.user, question.project, question.named)
    found = _answer(question, layers)
    consulted = _consulted(question, found.asked if found is not None else ())
    changed = before != tuple(_contents(question))
    if not changed and consulted is not None and all(value != GONE for _, _, value in before):
        _keep(question, (*before, *_looked_at(question, layers), *consulted), found)
    return found


def _answer(question: Question, layers: Sequence[Layer]) -> FileSettings | None:
    if not layers and not question.names and not (question.detect and anything_here()):
        return None
    return settled(layers, (*question.user, question.named), Wanted(question.names, question.detect, question.mode))


def _contents(question: Question) -> Iterator[tuple[str, str, object]]:
    for path in question.files:
        yield CONTENT, path, look(CONTENT, path)
    yield STAMP, trust_folder(), look(STAMP, trust_folder())


def _looked_at(question: Question, layers: Sequence[Layer]) -> Iterator[tuple[str, str, object]]:
    """Profiles, those of the project too, the files by which they are detected, and how far a project reaches."""
    for variable in SOCKETS:
        yield STAMP, variable, look(STAMP, variable)
    for mark in repository_marks(question.folder) if question.folder else ():
        yield THERE, mark, look(THERE, mark)
    of_project = (os.path.join(folder, name) for folder in project_folders() for name in OF_PROJECTS)
    for shelf in (profile_folder(), OURS, *of_project):
        yield STAMP, shelf, look(STAMP, shelf)
        for each in listed(shelf, PROJECTS):
            yield STAMP, each.path, look(STAMP, each.path)
    if question.detect:
        library = Library()
        for files in detection_rules(layers, own(), library).values():
            for file in files:
                for folder in project_folders():
                    path = os.path.join(folder, file)
                    yield THERE, path, look(THERE, path)
        library.close()


def _consulted(question: Question, tools: Sequence[str]) -> Basis | None:
    """What the answers of *tools* rest on; None where one cannot be kept."""
    found: dict[str, str] = {}
    for tool in tools:
        answer = cache.recall(tool, os.path.realpath(question.folder), question.home, os.environ)
        if answer is None or not answer.complete:
            return None
        found.update(answer.consulted)
    return tuple((STAMP, name, then) for name, then in found.items())


def _keep(question: Question, basis: Basis, found: FileSettings | None) -> None:
    """In one step; where that is not possible, the files are read again."""
    try:
        kept: Any = (MARK, time.time() + LASTS, basis, None if found is None else encode(found))
        data = marshal.dumps(kept)
        if len(data) > SIZE_LIMIT:
            return
        made_state_home()
        os.makedirs(memory_folder(), 0o700, exist_ok=True)
        make_room(memory_folder(), MAX_FILES)
        replace(question.place, data)
    except (OSError, ValueError, NetsandboxError):
        pass
