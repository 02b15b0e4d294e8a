"""A profile's text, made into rules. Pure: parameters and imported profiles are given by the caller.

What Seatbelt would refuse, and what is not understood, is a fault with its line. Loading goes on after a fault, so that
all of them can be shown; but a profile that has one is never judged (`Profile.checked`), because the rules that could
be read say nothing about the ones that could not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netsandbox.backends.seatbelt.profile import operations
from tests.seatbelt_model.filter_forms import build, is_filter, one_of
from tests.seatbelt_model.filters import Filter
from tests.seatbelt_model.reader import read_noting
from tests.seatbelt_model.scheme import Interpreter
from tests.seatbelt_model.values import (
    Datum,
    Form,
    Procedure,
    ProfileError,
    Scope,
    Symbol,
    printable,
    written,
)

ALLOW, DENY = "allow", "deny"
MODIFIERS = (
    "errno",
    "message",
    "no-log",
    "no-report",
    "no-sandbox",
    "no-symbolication",
    "no-times",
    "partial-symbolication",
    "report",
    "send-signal",
    "telemetry",
    "user-approval",
)
MAX_RULES = 20_000
MAX_IMPORTS = 32
Finder = Callable[[str], str | None]


class MissingImport(ProfileError):
    """A profile that is imported and not at hand, such as a system's own."""


@dataclass(frozen=True)
class Modifier:
    """`(with …)`: what happens besides the verdict."""

    name: str
    value: str = ""


@dataclass(frozen=True)
class Rule:
    """One action on some operations, when the filter matches; without a filter, always."""

    action: str
    operations: tuple[str, ...]
    filter: Filter | None
    modifiers: tuple[Modifier, ...] = ()
    line: int = 0
    source: str = ""  # the imported profile it stands in; empty for the profile itself


@dataclass(frozen=True)
class Import:
    """A profile that another one takes its rules from."""

    name: str
    line: int
    source: str = ""


@dataclass(frozen=True)
class Dropped:
    """A backslash in a string that means nothing before this character."""

    character: str
    line: int
    source: str = ""


@dataclass(frozen=True)
class Profile:
    rules: tuple[Rule, ...]
    faults: tuple[ProfileError, ...] = ()
    imports: tuple[Import, ...] = ()  # those that were at hand
    dropped: tuple[Dropped, ...] = ()

    def checked(self) -> tuple[Rule, ...]:
        """The rules; an error if the profile has any fault."""
        for fault in self.faults:
            raise fault
        return self.rules


def nothing(name: str) -> str | None:
    return None


def load(
    text: str, parameters: Mapping[str, str] | None = None, *, imported: Finder = nothing, unset: Finder = nothing
) -> Profile:
    """The rules of *text*; one that cannot be read at all raises `ProfileSyntaxError`.

    *imported* gives the text of a profile by its name, *unset* the value of a parameter that is not among *parameters*;
    None is "there is none".
    """
    loader = _Loader(parameters or {}, imported, unset)
    loader.read(text)
    if not loader.versioned:
        loader.faults.insert(0, ProfileError("there is no (version 1), without which nothing loads; write it first", 1))
    return Profile(tuple(loader.rules), tuple(loader.faults), tuple(loader.imports), tuple(loader.dropped))


class _Loader(Interpreter):
    """The language of profiles: rules, filters, parameters, imports."""

    def __init__(self, parameters: Mapping[str, str], imported: Finder, unset: Finder) -> None:
        super().__init__()
        self.rules: list[Rule] = []
        self.faults: list[ProfileError] = []
        self.versioned = False
        self._parameters = parameters
        self._imported = imported
        self._unset = unset
        self.imports: list[Import] = []
        self.dropped: list[Dropped] = []
        self._imports = 0
        self._source = ""
        self.scope.names["param"] = Procedure("param", self._param)
        self.special |= {
            ALLOW: self._rule,
            DENY: self._rule,
            "with": self._with,
            "version": self._version,
            "debug": self._debug,
            "import": self._import,
        }

    def read(self, text: str) -> None:
        """Run every form of *text*, which stands where we are now."""
        forms, dropped = read_noting(text)
        self.dropped += [Dropped(character, line, self._source) for line, character in dropped]
        self.run(forms)

    def run(self, forms: list[Datum]) -> None:
        for form in forms:
            try:
                self.value(form, self.scope)
            except ProfileError as error:
                self.faults.append(type(error)(error.text, error.line, error.source or self._source))

    def unknown_call(self, form: Form, scope: Scope) -> object:
        if not is_filter(form.head):
            return super().unknown_call(form, scope)
        return build(form.head, [self._argument(item, scope) for item in form.items[1:]], form.line)

    def _argument(self, datum: Datum, scope: Scope) -> object:
        """Words that nobody defined stand for themselves in a filter: `tcp`, `self`, `SYMLINK`."""
        if isinstance(datum, Symbol) and scope.find(datum.name) is None:
            return datum
        return self.value(datum, scope)

    def _rule(self, form: Form, scope: Scope) -> object:
        names: list[str] = []
        filters: list[Filter] = []
        modifiers: list[Modifier] = []
        for item in form.items[1:]:
            value = self._argument(item, scope)
            if isinstance(value, Symbol):
                names.append(_operation(value, form.line))
            elif isinstance(value, Filter):
                filters.append(value)
            elif isinstance(value, Modifier):
                modifiers.append(value)
            else:
                raise ProfileError(f"{written(value)} is no operation, filter or modifier; correct it")
        if not names:
            raise ProfileError(f"this {form.head} names no operation; write ({form.head} OPERATION FILTER …)")
        if len(self.rules) == MAX_RULES:
            raise ProfileError(f"the profile has more than {MAX_RULES} rules; make it shorter")
        filter_ = one_of(filters, form.line) if filters else None
        self.rules.append(Rule(form.head, tuple(names), filter_, tuple(modifiers), form.line, self._source))
        return ()

    def _with(self, form: Form, scope: Scope) -> object:
        word = form.items[1] if len(form.items) in (2, 3) else None
        if not isinstance(word, Symbol) or word.name not in MODIFIERS:
            raise ProfileError(
                f"{written(form)} is no modifier known here; write (with no-log), (with report) or the like"
            )
        value = self._argument(form.items[2], scope) if len(form.items) == 3 else ""
        return Modifier(word.name, value.name if isinstance(value, Symbol) else str(value))

    def _version(self, form: Form, scope: Scope) -> object:
        if form.items[1:] != (1,):
            raise ProfileError("only (version 1) is judged here; write that")
        self.versioned = self.versioned or not self._source
        return ()

    def _debug(self, form: Form, scope: Scope) -> object:
        return ()  # how much is logged, which changes no verdict

    def _param(self, values: list[object]) -> object:
        if len(values) != 1 or not isinstance(values[0], str):
            raise ProfileError('param takes one name; write (param "NAME")')
        value = self._parameters.get(values[0])
        value = self._unset(values[0]) if value is None else value
        return False if value is None else value

    def _import(self, form: Form, scope: Scope) -> object:
        name = self.value(form.items[1], scope) if len(form.items) == 2 else None
        if not isinstance(name, str):
            raise ProfileError('import takes one name; write (import "NAME.sb")')
        self._imports += 1
        text = self._imported(name) if self._imports <= MAX_IMPORTS else None
        if text is None:
            raise MissingImport(
                f"{written(name)} is not at hand, so what it allows is not judged; write its rules here"
            )
        self.imports.append(Import(name, form.line, self._source))
        before, self._source = self._source, printable(name)
        try:
            self.read(text)
        except ProfileError as error:
            raise type(error)(error.text, error.line, self._source) from None
        finally:
            self._source = before
        return ()


def _operation(symbol: Symbol, line: int) -> str:
    if symbol.name not in operations.KNOWN:
        shown, near = printable(symbol.name), operations.nearest(symbol.name)
        advice = f"did you mean {near}?" if near else "correct it"
        raise ProfileError(f"there is no operation {shown}, which voids the profile; {advice}", symbol.line or line)
    return operations.canonical(symbol.name)
