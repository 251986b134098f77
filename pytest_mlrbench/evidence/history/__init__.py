"""What an agent did, by its transcript: actions, shell commands, who wrote which file."""
