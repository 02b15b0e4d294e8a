"""The pytest plugin. pytest is not a dependency of netsandbox: only pytest itself loads these modules."""
