"""What is dangerous or mistaken in a profile, as findings with their line. Pure.

Each sentence ends in what to do. An `error` opens something, or keeps the profile from loading; a `warning` does not do
what it seems to.
"""

from __future__ import annotations

from netsandbox.backends.seatbelt.profile.operations import DEFAULT, covers, family
from tests.seatbelt_model.findings import Finding, error, warning
from tests.seatbelt_model.lint_network import network_findings
from tests.seatbelt_model.lint_order import order_findings
from tests.seatbelt_model.lint_paths import path_findings
from tests.seatbelt_model.lint_reach import reach_findings
from tests.seatbelt_model.profile import ALLOW, DENY, Dropped, Import, MissingImport, Profile, Rule
from tests.seatbelt_model.values import ProfileError, written

# They start or steer programs that no sandbox of ours confines; the second ones are harmless among the session's own.
_OUTSIDE = ("appleevent-send", "job-creation", "lsopen")
_OUTSIDE_IF_UNFILTERED = ("mach-priv-task-port", "mach-task-special-port-set")


def lint(profile: Profile) -> list[Finding]:
    """Every finding, in the order of the text."""
    rules = profile.rules
    found = [_fault(fault) for fault in profile.faults]
    found += [_import(each) for each in profile.imports]
    found += [dropped(each) for each in profile.dropped]
    found += _default(rules)
    for rule in rules:
        found += _escapes(rule)
        found += _services(rule)
        found += path_findings(rule)
    found += network_findings(rules)
    found += reach_findings(rules)
    found += order_findings(rules)
    return sorted(dict.fromkeys(found), key=lambda each: (each.source, each.line, each.severity, each.text))


def _fault(fault: ProfileError) -> Finding:
    if isinstance(fault, MissingImport):
        return warning(fault.line, "import", fault.text, fault.source)
    return error(fault.line, "fault", fault.text, fault.source)


def _import(each: Import) -> Finding:
    text = f"the rules of {written(each.name)} differ from one macOS to the next; write those that are needed here"
    return warning(each.line, "import", text, each.source)


def dropped(each: Dropped) -> Finding:
    text = f'in "…" \\{each.character} is {each.character} alone; write \\\\{each.character} to keep the backslash'
    return warning(each.line, "escape", text, each.source)


def _default(rules: tuple[Rule, ...]) -> list[Finding]:
    found = []
    first = rules[0] if rules else Rule(DENY, (), None, line=1)
    if first.action != DENY or DEFAULT not in first.operations or first.filter is not None:
        text = "the first rule is not (deny default), so what no rule names may be open; write (deny default) first"
        found.append(error(first.line, "deny-default", text, first.source))
    for rule in rules:
        if rule.action == ALLOW and DEFAULT in rule.operations:
            text = "(allow default) opens all that no rule names; write (deny default) and allow what is needed"
            found.append(error(rule.line, "allow-default", text, rule.source))
    return found


def _escapes(rule: Rule) -> list[Finding]:
    if rule.action != ALLOW:
        return []
    found = []
    if any(modifier.name == "no-sandbox" for modifier in rule.modifiers):
        text = "(with no-sandbox) starts programs without any sandbox; remove it"
        found.append(error(rule.line, "no-sandbox", text, rule.source))
    opened = [upper for upper in rule.operations if upper != DEFAULT]
    for name in _OUTSIDE if rule.filter else (*_OUTSIDE, *_OUTSIDE_IF_UNFILTERED):
        if any(covers(upper, name) for upper in opened):
            text = f"{name} reaches programs outside of the sandbox, which can act for this one; do not allow it"
            found.append(error(rule.line, "outside", text, rule.source))
    return found


def _services(rule: Rule) -> list[Finding]:
    looks_up = any(family(name) == "mach*" and covers(name, "mach-lookup") for name in rule.operations)
    if rule.action != ALLOW or not looks_up:
        return []
    if rule.filter is None:
        text = "every mach service can be asked, and some run programs or send data for others; name those needed"
        return [warning(rule.line, "services", text, rule.source)]
    return []
