"""Retries, timeouts, and answers that their caller leaves."""

import asyncio
import threading
import time

import anthropic
import openai
import pytest


def chat(model, **more):
    return {"model": model, "messages": [{"role": "user", "content": "Hello"}], **more}


def messages(model, **more):
    return {"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": "Hello"}], **more}


class Seen:
    """Notes each answer that reaches a client, with the retries too."""

    def __init__(self, client_of):
        self.answers = []
        self.http = client_of(event_hooks={"response": [self.note]})

    def note(self, answer):
        self.answers.append((answer.status_code, answer.headers.get("retry-after"), time.monotonic()))

    def statuses(self):
        return [status for status, _, _ in self.answers]


@pytest.fixture
def narrow(account):
    """Takes the one place of narrow-1 for a second; the stream is read to its end afterwards."""
    stream = account.openai().chat.completions.create(**chat("narrow-1", stream=True, stream_options={"include_usage": True}))
    first = next(stream)
    chunks = [first]
    reading = threading.Thread(target=lambda: chunks.extend(stream))
    reading.start()
    yield
    reading.join()
    account.pays("narrow-1", chunks[-1].usage)


def test_openai_comes_back_when_told(account, narrow):
    seen = Seen(openai.DefaultHttpxClient)
    answer = account.openai(http_client=seen.http, max_retries=5).chat.completions.create(**chat("narrow-1"))
    account.pays("narrow-1", answer.usage)
    assert seen.statuses()[0] == 429 and seen.statuses()[-1] == 200, seen.answers
    for (_, wait, at), (_, _, then) in zip(seen.answers, seen.answers[1:], strict=False):
        assert then - at >= float(wait), seen.answers


def test_anthropic_comes_back_by_itself(account, narrow):
    seen = Seen(anthropic.DefaultHttpxClient)
    answer = account.anthropic(http_client=seen.http, max_retries=5).messages.create(**messages("narrow-1"))
    account.pays("narrow-1", answer.usage)
    assert seen.statuses()[0] == 429 and seen.statuses()[-1] == 200, seen.answers


def test_nobody_repeats_in_vain(accounts):
    """No balance, and a free quota that is used up: another try cannot help, and the clients make none."""
    account, poor = accounts(), accounts("0")
    account.openai().chat.completions.create(**chat("free-1"))
    for who, model, status in [(account, "free-1", 429), (poor, "swift-1", 402)]:
        seen = Seen(openai.DefaultHttpxClient)
        with pytest.raises(openai.APIStatusError):
            who.openai(http_client=seen.http, max_retries=2).chat.completions.create(**chat(model))
        assert seen.statuses() == [status]
    for who, model, status in [(account, "free-1", 429), (poor, "on-chat", 402)]:
        seen = Seen(anthropic.DefaultHttpxClient)
        with pytest.raises(anthropic.APIStatusError):
            who.anthropic(http_client=seen.http, max_retries=2).messages.create(**messages(model))
        assert seen.statuses() == [status]


def test_what_is_wrong_is_said_once(account):
    seen = Seen(openai.DefaultHttpxClient)
    with pytest.raises(openai.BadRequestError):
        account.openai(http_client=seen.http, max_retries=2).chat.completions.create(**chat("nothing-1"))
    assert seen.statuses() == [400]


def test_troubles_are_tried_again(account):
    seen = Seen(openai.DefaultHttpxClient)
    with pytest.raises(openai.InternalServerError):
        account.openai(http_client=seen.http, max_retries=1).chat.completions.create(**chat("resting-1"))
    assert seen.statuses() == [503, 503]


def test_timeouts_cost_nothing(account):
    """The caller leaves before the first byte."""
    with pytest.raises(openai.APITimeoutError):
        account.openai(timeout=0.3).chat.completions.create(**chat("late-1"))
    with pytest.raises(openai.APITimeoutError):
        account.openai(timeout=0.3).responses.create(model="late-1", input="Hello", stream=True)
    with pytest.raises(anthropic.APITimeoutError):
        account.anthropic(timeout=0.3).messages.create(**messages("late-1"))
    with pytest.raises(openai.APITimeoutError):
        account.openai().with_options(timeout=0.3).chat.completions.create(**chat("late-1", stream=True))


def test_streams_that_are_left_cost_what_they_brought(account):
    with account.openai().chat.completions.create(**chat("long-1", stream=True)) as stream:
        for _ in range(10):
            next(stream)
    account.pays_part(5, 500)
    with account.openai().responses.create(model="long-1", input="Hello", stream=True) as stream:
        for _ in range(10):
            next(stream)
    account.pays_part(5, 500)
    with account.anthropic().messages.create(**messages("long-1", stream=True)) as stream:
        for _ in range(10):
            next(iter(stream))
    account.pays_part(5, 500)


def test_a_task_that_is_cancelled(account):
    async def cancelled(request):
        task = asyncio.create_task(request)
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def both():
        async with account.openai(openai.AsyncOpenAI) as client:
            await cancelled(client.chat.completions.create(**chat("late-1")))
        async with account.anthropic(anthropic.AsyncAnthropic) as client:
            await cancelled(client.messages.create(**messages("late-1")))

    asyncio.run(both())


def test_many_at_a_time(account):
    async def all_of_them():
        async with account.openai(openai.AsyncOpenAI, max_retries=2) as client:
            return await asyncio.gather(*(client.chat.completions.create(**chat("swift-1")) for _ in range(40)))

    for answer in asyncio.run(all_of_them()):
        account.pays("swift-1", answer.usage)


def test_a_gateway_that_is_not_there():
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="sk-any", max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        client.models.list()
