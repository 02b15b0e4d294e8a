"""The part of Scheme that profiles are written in: names, functions, conditions, lists. Pure.

Steps and depth are bounded, so every profile comes to an end. Whatever is not understood is a `ProfileError` with the
line of the list it stands in; nothing is skipped over.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.seatbelt_model.procedures import PROCEDURES, bounded, sequence, truth
from tests.seatbelt_model.values import (
    Closure,
    Datum,
    Form,
    Procedure,
    ProfileError,
    Scope,
    Symbol,
    printable,
    written,
)

MAX_STEPS = 500_000
MAX_DEPTH = 80
Special = Callable[[Form, Scope], object]


class Interpreter:
    """Evaluates forms one after another in one scope. Others add special forms and names of their own."""

    def __init__(self) -> None:
        self.steps = 0
        self.depth = 0
        self.scope = Scope(names=dict(PROCEDURES))
        self.special: dict[str, Special] = {
            "quote": self._quote,
            "define": self._define,
            "set!": self._set,
            "lambda": self._lambda,
            "let": self._let,
            "let*": self._let,
            "begin": self._begin,
            "if": self._if,
            "when": self._when,
            "unless": self._when,
            "cond": self._cond,
            "and": self._and,
            "or": self._or,
        }
        for name, call in (("map", self._map), ("for-each", self._map), ("apply", self._apply)):
            self.scope.names[name] = Procedure(name, call)

    def value(self, datum: Datum, scope: Scope) -> object:
        """What *datum* stands for."""
        if isinstance(datum, Symbol):
            return self.named(datum, scope)
        if not isinstance(datum, Form):
            return datum
        self.spend(1)
        if self.depth == MAX_DEPTH:
            raise ProfileError(f"calls are nested more than {MAX_DEPTH} deep; make it simpler", datum.line)
        self.depth += 1
        try:
            return self._form(datum, scope)
        except ProfileError as error:
            if error.line:
                raise
            raise type(error)(error.text, datum.line, error.source) from None
        finally:
            self.depth -= 1

    def spend(self, steps: int) -> None:
        """What makes long lists costs more than one step."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise ProfileError(f"the profile takes more than {MAX_STEPS} steps; make it simpler")

    def named(self, symbol: Symbol, scope: Scope) -> object:
        holder = scope.find(symbol.name)
        if holder is None:
            raise ProfileError(f"the name {printable(symbol.name)} is not known; define it or correct it", symbol.line)
        return holder.names[symbol.name]

    def _form(self, form: Form, scope: Scope) -> object:
        if not form.items:
            raise ProfileError("an empty list cannot be called; write '() for the empty list")
        if form.head in self.special and scope.find(form.head) is None:
            return self.special[form.head](form, scope)
        if form.head and scope.find(form.head) is None:
            return self.unknown_call(form, scope)
        function = self.value(form.items[0], scope)
        return self.call(function, [self.value(item, scope) for item in form.items[1:]])

    def unknown_call(self, form: Form, scope: Scope) -> object:
        """A list that begins with a name nobody defined."""
        raise ProfileError(f"{printable(form.head)} is not a filter or function known here; correct it or leave it out")

    def call(self, function: object, values: list[object]) -> object:
        if isinstance(function, Procedure):
            result = function.call(values)
            self.spend(1 + len(result) // 8 if isinstance(result, (str, tuple)) else 1)
            return result
        if not isinstance(function, Closure):
            raise ProfileError(f"{written(function)} is no function; remove the parentheses around it")
        few = len(function.parameters)
        if len(values) < few or (len(values) > few and function.rest is None):
            raise ProfileError(f"{written(function)} takes {few} arguments, not {len(values)}; mend the call")
        names = dict(zip(function.parameters, values, strict=False))
        if function.rest is not None:
            names[function.rest] = tuple(values[few:])
        return self.body(function.body, Scope(function.scope, names))

    def body(self, forms: tuple[Datum, ...], scope: Scope) -> object:
        result: object = ()
        for form in forms:
            result = self.value(form, scope)
        return result

    def _quote(self, form: Form, scope: Scope) -> object:
        return _data(_arguments(form, 1, 1)[0])

    def _define(self, form: Form, scope: Scope) -> object:
        target, *body = _arguments(form, 2)
        if isinstance(target, Form) and target.head:
            scope.names[target.head] = _closure(target.head, Form(target.items[1:]), tuple(body), scope)
        elif isinstance(target, Symbol) and len(body) == 1:
            scope.names[target.name] = self.value(body[0], scope)
        else:
            raise ProfileError("define takes a name and a value; write (define NAME VALUE)")
        return ()

    def _set(self, form: Form, scope: Scope) -> object:
        target, value = _arguments(form, 2, 2)
        holder = scope.find(target.name) if isinstance(target, Symbol) else None
        if not isinstance(target, Symbol) or holder is None:
            raise ProfileError("set! takes a name that is defined; define it first")
        holder.names[target.name] = self.value(value, scope)
        return ()

    def _lambda(self, form: Form, scope: Scope) -> object:
        parameters, *body = _arguments(form, 2)
        return _closure("lambda", parameters, tuple(body), scope)

    def _let(self, form: Form, scope: Scope) -> object:
        bindings, *body = _arguments(form, 2)
        inner = Scope(scope)
        for pair in bindings.items if isinstance(bindings, Form) else (bindings,):
            if not isinstance(pair, Form) or not pair.head or len(pair.items) != 2:
                raise ProfileError("let takes pairs of a name and a value; write (let ((NAME VALUE)) …)")
            inner.names[pair.head] = self.value(pair.items[1], inner if form.head == "let*" else scope)
        return self.body(tuple(body), inner)

    def _begin(self, form: Form, scope: Scope) -> object:
        return self.body(form.items[1:], scope)

    def _if(self, form: Form, scope: Scope) -> object:
        test, *branches = _arguments(form, 2, 3)
        if truth(self.value(test, scope)):
            return self.value(branches[0], scope)
        return self.value(branches[1], scope) if len(branches) == 2 else ()

    def _when(self, form: Form, scope: Scope) -> object:
        test, *body = _arguments(form, 1)
        wanted = form.head == "when"
        return self.body(tuple(body), scope) if truth(self.value(test, scope)) is wanted else ()

    def _cond(self, form: Form, scope: Scope) -> object:
        for clause in form.items[1:]:
            if not isinstance(clause, Form) or not clause.items:
                raise ProfileError("cond takes clauses; write (cond (TEST VALUE …) (else VALUE …))")
            if clause.head == "else":
                return self.body(clause.items[1:], scope)
            test = self.value(clause.items[0], scope)
            if truth(test):
                return self.body(clause.items[1:], scope) if len(clause.items) > 1 else test
        return ()

    def _and(self, form: Form, scope: Scope) -> object:
        result: object = True
        for item in form.items[1:]:
            result = self.value(item, scope)
            if not truth(result):
                break
        return result

    def _or(self, form: Form, scope: Scope) -> object:
        for item in form.items[1:]:
            result = self.value(item, scope)
            if truth(result):
                return result
        return False

    def _map(self, values: list[object]) -> object:
        if len(values) < 2:
            raise ProfileError("map and for-each take a function and lists; write (map FUNCTION LIST)")
        lists = [sequence(value, "map") for value in values[1:]]
        return bounded([self.call(values[0], list(row)) for row in zip(*lists, strict=False)])

    def _apply(self, values: list[object]) -> object:
        if len(values) < 2:
            raise ProfileError("apply takes a function and a list; write (apply FUNCTION LIST)")
        return self.call(values[0], [*values[1:-1], *sequence(values[-1], "apply")])


def _arguments(form: Form, least: int, most: int | None = None) -> tuple[Datum, ...]:
    count = len(form.items) - 1
    if count < least or (most is not None and count > most):
        raise ProfileError(f"{form.head} with {count} arguments; it takes {least if most in (None, least) else most}")
    return form.items[1:]


def _closure(name: str, parameters: Datum, body: tuple[Datum, ...], scope: Scope) -> Closure:
    if isinstance(parameters, Symbol):
        return Closure(name, (), parameters.name, body, scope)
    items = parameters.items if isinstance(parameters, Form) else (parameters,)
    names = [item.name for item in items if isinstance(item, Symbol)]
    dotted = "." in names
    if len(names) != len(items) or (dotted and names.index(".") != len(names) - 2):
        raise ProfileError(f"{name} has parameters that are no names; write (define (NAME PARAMETER …) …)")
    return Closure(name, tuple(names[:-2] if dotted else names), names[-1] if dotted else None, body, scope)


def _data(datum: Datum) -> object:
    return tuple(_data(item) for item in datum.items) if isinstance(datum, Form) else datum
