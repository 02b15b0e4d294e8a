"""bash, zsh and fish: the mode in their prompt, and what they complete after the word netsandbox."""
