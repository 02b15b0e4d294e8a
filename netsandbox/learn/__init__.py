"""From the log of a run to the smallest policy that would have let it through. Pure but for `project_text`."""
