"""What the sandbox recorded: processes, writers, inputs."""
