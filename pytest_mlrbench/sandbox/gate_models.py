"""The reverse proxy in front of the providers: what passes is sent on, counted and recorded."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_mlrbench.errors import InputError
from pytest_mlrbench.models.config import ModelConfig, Provider
from pytest_mlrbench.sandbox import gate_rules as rules
from pytest_mlrbench.sandbox.gate_account import Account
from pytest_mlrbench.sandbox.gate_call import Call
from pytest_mlrbench.sandbox.gate_headers import sent_back, sent_on, tokens_in
from pytest_mlrbench.sandbox.gate_reach import check_reach
from pytest_mlrbench.sandbox.gate_reading import parts_of
from pytest_mlrbench.sandbox.gate_refusals import Refusal
from pytest_mlrbench.sandbox.gate_tiers import check_tiers
from pytest_mlrbench.sandbox.gate_upstream import Ready, Upstream, ready
from pytest_mlrbench.sandbox.gate_usage import UsageReader

if TYPE_CHECKING:
    from aiohttp.web import BaseRequest, StreamResponse

    from pytest_mlrbench.sandbox.gate import Policy

#: Bytes of one request, and of all that are under way: they are held until they are answered.
LONGEST_BODY = 32 * 2**20
LONGEST_BODIES = 256 * 2**20


class ModelProxy:
    """Sends the requests of one case on to the providers.

    :param token: what a request must carry in place of a key.
    :param record: takes each request: method, path, and what became of it.
    """

    def __init__(
        self,
        token: str,
        account: Account,
        policy: Policy,
        record: Callable[[str, str, Call], None],
    ) -> None:
        self.upstream = Upstream()
        self._token = token.encode()
        self._account = account
        self._policy = policy
        self._record = record
        self._held = 0
        self._under_way = 0
        self._ending = False

    async def end(self, seconds: float) -> None:
        """Let no more requests pass, and give those under way so long to be answered."""
        self._ending = True
        until = time.monotonic() + seconds
        while self._under_way and time.monotonic() < until:
            await asyncio.sleep(0.02)

    async def answer(self, request: BaseRequest) -> StreamResponse:
        """Answer one request, whatever it is."""
        call = Call(provider=rules.provider_of(request.raw_path))
        self._under_way += 1
        try:
            return await self._admit(request, call)
        except Refusal as refusal:
            call.status = refusal.status
            call.error = call.error or f"{refusal.cause}: {refusal.message}"
            return _refuse(refusal, call.provider)
        except asyncio.CancelledError:
            call.error = call.error or "cut: the case ended"
            raise
        except ConnectionError:
            call.error = call.error or "left: the agent did not send all of its request"
            raise
        finally:
            self._under_way -= 1
            self._held -= call.sent
            self._record(request.method, request.raw_path.partition("?")[0], call)

    async def _admit(self, request: BaseRequest, call: Call) -> StreamResponse:
        if request.raw_path.lower().startswith("http://"):
            raise Refusal(403, "plain", "plain HTTP is not passed on to other hosts: use https.")
        place = self._authenticate(request)
        self._check_open()
        asked = rules.find(request.method, request.raw_path)
        if asked.provider not in self._policy.providers:
            raise Refusal(403, "provider", f"{asked.provider} is not among this run's providers.")
        try:
            async with asyncio.timeout(max(0.0, self._policy.deadline - time.time())):
                body = await self._body(request, call)
                async with self._account.slots:
                    self._check_open()
                    headers = sent_on(request.headers)
                    config = self._config(asked, body, headers, call)
                    full = ready(request.method, asked, body, headers, place, config)
                    return await self._pass_and_count(request, call, full, config)
        except TimeoutError:
            call.error = "deadline: the time of the case was over"
            raise ConnectionResetError(call.error) from None

    def _check_open(self) -> None:
        if self._ending or time.time() >= self._policy.deadline:
            raise Refusal(403, "deadline", "the time of the case is over.")

    def _authenticate(self, request: BaseRequest) -> str:
        """Return the header that the token came in.

        :raises Refusal: there is none, or another one.
        """
        for name, token in tokens_in(request.headers, request.raw_path.partition("?")[2]):
            if hmac.compare_digest(token, self._token):
                return name
        raise Refusal(401, "token", "the key is not that of this case.")

    async def _body(self, request: BaseRequest, call: Call) -> bytes:
        """Return the body, which is counted as held until the request has been answered.

        :raises Refusal: it is too long, or compressed: then it could become any length.
        """
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refusal(400, "body", "the body must not be compressed.")
        too_long = Refusal(413, "body", f"the body is longer than {LONGEST_BODY // 2**20} MiB.")
        if (request.content_length or 0) > LONGEST_BODY:
            raise too_long
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        async for piece in request.content.iter_any():
            body += piece
            call.sent = len(body)
            self._held += len(piece)
            if len(body) > LONGEST_BODY:
                raise too_long
            if self._held > LONGEST_BODIES:
                raise Refusal(429, "at_once", "too much is under way: wait for an answer.")
        return bytes(body)

    def _config(
        self, asked: rules.Asked, body: bytes, headers: Mapping[str, str], call: Call
    ) -> ModelConfig:
        """Return the model asked for, if it may be asked."""
        if body or asked.costs:
            document = rules.read_body(body)
            parts = parts_of(asked.provider, document)
            counted = asked.costs and self._account.max_cost is not None
            call.model = rules.model_in(asked, document)
            rules.check_models(asked, call.model, parts, self._policy.models, counted=counted)
            if not self._policy.web_tools:
                check_reach(asked.provider, parts)
            if counted:
                check_tiers(parts, headers)
            if asked.costs:
                rules.check_countable(asked, document, limited=self._account.limited)
                self._account.check(asked.provider, call.model)
        try:
            return self._account.config(f"{asked.provider}:{call.model or '*'}")
        except InputError as error:
            raise Refusal(400, "model", str(error)) from None

    async def _pass_and_count(
        self, request: BaseRequest, call: Call, full: Ready, config: ModelConfig
    ) -> StreamResponse:
        def count() -> None:
            if full.asked.costs and not call.counted:
                self._count(call, config)

        try:
            return await self._pass(request, call, full, count)
        except Refusal as refusal:
            call.status = refusal.status
            call.error = f"{refusal.cause}: {self.upstream.failing or refusal.message}"
            raise
        finally:
            count()

    async def _pass(
        self, request: BaseRequest, call: Call, full: Ready, count: Callable[[], None]
    ) -> StreamResponse:
        """Send a request on, and its answer back.

        :param count: is called before the agent can know that the answer is whole and ask again.
        """
        from aiohttp import ClientError
        from aiohttp.web import StreamResponse

        hiding = full.hiding
        async with await self.upstream.send(full) as answer:
            call.status = answer.status
            stream = answer.content_type == "text/event-stream"
            call.reader = UsageReader(full.asked.provider, stream=stream)
            shown = {name: hiding.in_text(v) for name, v in sent_back(answer.headers).items()}
            back = StreamResponse(status=answer.status, headers=shown)
            listening = await _written(back.prepare(request))
            try:
                async for piece in answer.content.iter_any():
                    call.received += len(piece)
                    call.reader.feed(piece)
                    if call.received == answer.content_length:
                        call.whole = True
                        count()
                    # An answer nobody waits for is read to its end: there is what it used.
                    if listening and (seen := hiding.feed(piece)):
                        listening = await _written(back.write(seen))
            except (ClientError, OSError) as error:
                self.upstream.broke(full, "broke off its answer", error)
                call.error = f"truncated: {self.upstream.failing}"
                raise ConnectionResetError(call.error) from None
            call.whole = True
            count()
            if not (listening and await _written(back.write_eof(hiding.end()))):
                call.error = "left: the agent did not wait for the answer"
            return back

    def _count(self, call: Call, config: ModelConfig) -> None:
        """Count what an answer used; of one that broke off, or never came, nobody knows."""
        call.counted = True
        answered = call.status < 400
        if answered and call.whole and call.reader is not None:
            call.reader.end()
            call.usage, by = call.reader.usage, call.reader.model
            call.cost = self._account.cost(config, call.usage, by, call.reader.written)
        size = call.sent + call.received
        self._account.enter(config, call.usage, call.cost, size, answered=answered)


async def _written(writing: Awaitable[Any]) -> bool:
    """Await a write; return whether the other side is still there."""
    try:
        await writing
    except ConnectionError:
        return False
    return True


def _refuse(refusal: Refusal, provider: Provider | None) -> StreamResponse:
    from aiohttp.web import Response

    return Response(
        status=refusal.status,
        body=refusal.body(provider),
        content_type="application/json",
        headers=refusal.headers,
    )
