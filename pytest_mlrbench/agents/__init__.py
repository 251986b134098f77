"""Who answers: the agents a case can be given to."""
