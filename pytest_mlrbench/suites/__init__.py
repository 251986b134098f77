"""What is asked: stages, rubrics, suites of tasks, and their selection."""
