"""Chat completions with the official OpenAI client, on lines of every form."""

import asyncio
import json

import openai
import pytest
from openai import pydantic_function_tool
from pydantic import BaseModel

RED_DOT = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
LINES = pytest.mark.parametrize("model", ["on-chat", "on-responses", "on-messages"])
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Person(BaseModel):
    name: str
    age: int


def ask(model, content, **more):
    return {"model": model, "messages": [{"role": "user", "content": content}], **more}


@LINES
def test_answers(account, model):
    raw = account.openai().chat.completions.with_raw_response.create(**ask(model, "Good morning"))
    answer = raw.parse()
    assert (answer.object, answer.model, answer.choices[0].finish_reason) == ("chat.completion", model, "stop")
    assert "Good morning" in answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id.startswith("req_") and raw.headers["request-id"] == answer._request_id
    account.pays(model, answer.usage)


@LINES
def test_streams_with_usage(account, model):
    stream = account.openai().chat.completions.create(**ask(model, "Tell me more"), stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "Tell me more" in text
    assert {(chunk.id, chunk.model, chunk.object) for chunk in chunks} == {(chunks[0].id, model, "chat.completion.chunk")}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == [] and all(chunk.usage is None for chunk in chunks[:-1])
    account.pays(model, chunks[-1].usage)


def test_streams_without_usage(account):
    client = account.openai()
    whole = client.chat.completions.create(**ask("on-chat", "Tell me more"))
    chunks = list(client.chat.completions.create(**ask("on-chat", "Tell me more"), stream=True))
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    for _ in range(2):  # the same words cost the same
        account.pays("on-chat", whole.usage)


@LINES
def test_calls_tools(account, model):
    client, asked = account.openai(), ask(model, "Please get weather for Oslo", tools=[WEATHER])
    answer = client.chat.completions.create(**asked)
    account.pays(model, answer.usage)
    message = answer.choices[0].message
    assert answer.choices[0].finish_reason == "tool_calls" and len(message.tool_calls) == 1
    call = message.tool_calls[0]
    assert call.function.name == "get_weather" and "city" in json.loads(call.function.arguments)
    asked["messages"] += [message, {"role": "tool", "tool_call_id": call.id, "content": "Rain, 4 degrees"}]
    answer = client.chat.completions.create(**asked)
    account.pays(model, answer.usage)
    assert "Rain, 4 degrees" in answer.choices[0].message.content


@LINES
def test_streams_parsed_tool_calls(account, model):
    class GetWeather(BaseModel):
        city: str

    tool = pydantic_function_tool(GetWeather, name="get_weather")
    asked = ask(model, "Please get weather for Oslo", tools=[tool], stream_options={"include_usage": True})
    with account.openai().chat.completions.stream(**asked) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    assert "tool_calls.function.arguments.done" in kinds
    assert isinstance(answer.choices[0].message.tool_calls[0].function.parsed_arguments, GetWeather)
    account.pays(model, answer.usage)


@LINES
def test_sees_images(account, model):
    content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": RED_DOT}}]
    answer = account.openai().chat.completions.create(**ask(model, content))
    assert "What is this?" in answer.choices[0].message.content
    account.pays(model, answer.usage)


@LINES
def test_parses(account, model):
    answer = account.openai().chat.completions.parse(**ask(model, "Who are you?"), response_format=Person)
    assert isinstance(answer.choices[0].message.parsed, Person)
    account.pays(model, answer.usage)


@LINES
def test_streams_parsed(account, model):
    asked = ask(model, "Who are you?", response_format=Person, stream_options={"include_usage": True})
    with account.openai().chat.completions.stream(**asked) as stream:
        answer = stream.until_done().get_final_completion()
    assert isinstance(answer.choices[0].message.parsed, Person)
    account.pays(model, answer.usage)


def test_cut_at_its_limit(account):
    client = account.openai()
    answer = client.chat.completions.create(**ask("on-chat", "Tell me more"), max_tokens=2)
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 2)
    account.pays("on-chat", answer.usage)
    with pytest.raises(openai.LengthFinishReasonError) as raised:
        client.chat.completions.parse(**ask("on-chat", "Who are you?"), response_format=Person, max_tokens=2)
    account.pays("on-chat", raised.value.completion.usage)


@pytest.mark.parametrize("model", ["thinks-on-chat", "thinks-on-responses", "thinks-on-messages"])
def test_thinks(account, model):
    answer = account.openai().chat.completions.create(**ask(model, "Why?"), reasoning_effort="low")
    assert answer.choices[0].message.content and answer.usage.completion_tokens_details.reasoning_tokens > 0
    account.pays(model, answer.usage)


@pytest.mark.parametrize("model", ["cut-on-chat", "cut-on-responses", "cut-on-messages"])
def test_a_stream_that_fails_raises(account, model):
    heard = ""
    with pytest.raises(openai.APIError) as raised:
        for chunk in account.openai().chat.completions.create(**ask(model, "Hello"), stream=True):
            heard += chunk.choices[0].delta.content or ""
    assert heard and raised.value.code and raised.value.type
    account.pays_part(5, 25)  # five tokens were sent


def test_asynchronous(account):
    async def both():
        async with account.openai(openai.AsyncOpenAI) as client:
            answer = await client.chat.completions.create(**ask("on-chat", "Good morning"))
            asked = ask("on-chat", "Tell me more", stream=True, stream_options={"include_usage": True})
            return answer.usage, [chunk async for chunk in await client.chat.completions.create(**asked)][-1].usage

    for usage in asyncio.run(both()):
        account.pays("on-chat", usage)


def test_models(account):
    client = account.openai()
    ids = {model.id for model in client.models.list()}
    assert {"swift-1", "soon-1"} <= ids and "gone-1" not in ids
    model = client.models.retrieve("swift-1")
    assert (model.id, model.object, model.owned_by) == ("swift-1", "model", "example")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nothing-1")
