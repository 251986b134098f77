"""What a run recorded: the numbers of its files, and which reported ones lead there."""
