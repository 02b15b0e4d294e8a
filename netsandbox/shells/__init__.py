"""bash, zsh and fish: the mode in their prompt, and completion of the netsandbox command."""
