"""Live models: one small async interface over the SDKs of the providers.

::

    async with Models() as models:
        client = models.client(parse_model("anthropic:claude-opus-4-5", max_tokens=4000))
        answer = await complete(client, Prompt.of("Hello"), Request(json_schema=schema))

``Models`` is in ``registry``, ``complete`` in ``client``, what is asked and answered in
``exchange``, what goes wrong in ``faults``. An SDK is imported when a client of it is made.
"""
