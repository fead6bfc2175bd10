"""Messages with the official Anthropic client, on lines of every form."""

import asyncio

import anthropic
import pytest
from pydantic import BaseModel

LINES = pytest.mark.parametrize("model", ["on-messages", "on-responses", "on-chat"])
RED_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WEATHER = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


class Person(BaseModel):
    name: str
    age: int


def ask(model, content, **more):
    return {"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": content}]} | more


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


@LINES
def test_answers(account, model):
    raw = account.anthropic().messages.with_raw_response.create(**ask(model, "Good morning"), system="Be brief.")
    message = raw.parse()
    assert (message.type, message.role, message.model, message.stop_reason) == ("message", "assistant", model, "end_turn")
    assert "Good morning" in text_of(message)
    assert message._request_id.startswith("req_") and raw.headers["x-request-id"] == message._request_id
    account.pays(model, message.usage)


@LINES
def test_streams(account, model):
    with account.anthropic().messages.stream(**ask(model, "Tell me more")) as stream:
        heard = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert "Tell me more" in heard and text_of(message) == heard
    assert (message.model, message.stop_reason) == (model, "end_turn")
    account.pays(model, message.usage)


@LINES
def test_calls_tools(account, model):
    client, asked = account.anthropic(), ask(model, "Please get weather for Oslo", tools=[WEATHER])
    with client.messages.stream(**asked) as stream:
        message = stream.get_final_message()
    account.pays(model, message.usage)
    call = next(block for block in message.content if block.type == "tool_use")
    assert (message.stop_reason, call.name) == ("tool_use", "get_weather") and "city" in call.input
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain, 4 degrees"}
    asked["messages"] += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    answer = client.messages.create(**asked)
    account.pays(model, answer.usage)
    assert "Rain, 4 degrees" in text_of(answer)


@pytest.mark.parametrize("model", ["thinks-on-messages", "thinks-on-responses", "thinks-on-chat"])
def test_thinks(account, model):
    client = account.anthropic()
    asked = ask(model, "Why?", max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 1024})
    with client.messages.stream(**asked) as stream:
        message = stream.get_final_message()
    account.pays(model, message.usage)
    assert [block.type for block in message.content if block.type != "redacted_thinking"] == ["thinking", "text"]
    asked["messages"] += [{"role": "assistant", "content": message.content}, {"role": "user", "content": "And then?"}]
    answer = client.messages.create(**asked)
    account.pays(model, answer.usage)
    assert "And then?" in text_of(answer)


@LINES
def test_sees_images(account, model):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": RED_DOT}}
    message = account.anthropic().messages.create(**ask(model, [{"type": "text", "text": "What is this?"}, image]))
    assert "What is this?" in text_of(message)
    account.pays(model, message.usage)


@LINES
def test_parses(account, model):
    message = account.anthropic().messages.parse(**ask(model, "Who are you?"), output_format=Person)
    assert isinstance(message.parsed_output, Person)
    account.pays(model, message.usage)


@LINES
def test_counts_tokens(account, model):
    asked = {"model": model, "messages": [{"role": "user", "content": "How long is this?"}]}
    assert 4 < account.anthropic().messages.count_tokens(**asked).input_tokens < 50  # and it is free


@LINES
def test_cut_at_its_limit(account, model):
    message = account.anthropic().messages.create(**ask(model, "Tell me more, " * 20, max_tokens=16))
    assert message.stop_reason == "max_tokens"
    account.pays(model, message.usage)


@pytest.mark.parametrize("model", ["cut-on-messages", "cut-on-responses", "cut-on-chat"])
def test_a_stream_that_fails_raises(account, model):
    heard = ""
    with pytest.raises(anthropic.APIError):
        with account.anthropic().messages.stream(**ask(model, "Hello")) as stream:
            for piece in stream.text_stream:
                heard += piece
    assert heard
    account.pays_part(5, 25)  # five tokens were sent


def test_asynchronous(account):
    async def both():
        async with account.anthropic(anthropic.AsyncAnthropic) as client:
            message = await client.messages.create(**ask("on-messages", "Good morning"))
            async with client.messages.stream(**ask("on-messages", "Tell me more")) as stream:
                return message.usage, (await stream.get_final_message()).usage

    for usage in asyncio.run(both()):
        account.pays("on-messages", usage)


def test_models(account):
    client = account.anthropic()
    models = list(client.models.list(limit=3))  # page by page
    ids = [model.id for model in models]
    assert len(set(ids)) == len(ids) > 6 and all(model.display_name and model.created_at for model in models)
    assert "on-messages" in ids and "swift-1" not in ids and "gone-1" not in ids
    assert client.models.retrieve("on-messages").id == "on-messages"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("nothing-1")
