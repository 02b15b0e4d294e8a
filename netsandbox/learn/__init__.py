"""Proposes the smallest policy for a run, from its log. All modules are pure except `project_text`."""
