"""What `netsandbox doctor` looks at: the machine, and the jail from inside."""
