"""Responses with the official OpenAI client, on lines of every form."""

import asyncio
import json

import openai
import pytest
from pydantic import BaseModel

LINES = pytest.mark.parametrize("model", ["on-responses", "on-chat", "on-messages"])
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
}


class Person(BaseModel):
    name: str
    age: int


def ask(model, content, **more):
    return {"model": model, "input": content, **more}


@LINES
def test_answers(account, model):
    raw = account.openai().responses.with_raw_response.create(**ask(model, "Good morning", instructions="Be brief."))
    answer = raw.parse()
    assert (answer.object, answer.model, answer.status) == ("response", model, "completed")
    assert "Good morning" in answer.output_text
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer._request_id.startswith("req_") and raw.headers["request-id"] == answer._request_id
    account.pays(model, answer.usage)


@LINES
def test_streams(account, model):
    with account.openai().responses.stream(**ask(model, "Tell me more")) as stream:
        events = list(stream)
        answer = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    heard = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert "Tell me more" in heard and answer.output_text == heard
    account.pays(model, answer.usage)


@LINES
def test_calls_functions(account, model):
    client, said = account.openai(), [{"role": "user", "content": "Please get weather for Oslo"}]
    with client.responses.stream(**ask(model, said, tools=[WEATHER])) as stream:
        answer = stream.until_done().get_final_response()
    account.pays(model, answer.usage)
    call = next(item for item in answer.output if item.type == "function_call")
    assert call.name == "get_weather" and "city" in json.loads(call.arguments)
    said += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
    said.append({"type": "function_call_output", "call_id": call.call_id, "output": "Rain, 4 degrees"})
    answer = client.responses.create(**ask(model, said, tools=[WEATHER]))
    account.pays(model, answer.usage)
    assert "Rain, 4 degrees" in answer.output_text


@pytest.mark.parametrize("model", ["thinks-on-responses", "thinks-on-chat", "thinks-on-messages"])
def test_goes_on_from_its_reasoning(account, model):
    client, said = account.openai(), [{"role": "user", "content": "Why?"}]
    thinking = {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"], "store": False}
    answer = client.responses.create(**ask(model, said, **thinking))
    account.pays(model, answer.usage)
    assert [item.type for item in answer.output] == ["reasoning", "message"] and answer.output[0].summary[0].text
    said += [item.model_dump(exclude_none=True) for item in answer.output]
    said.append({"role": "user", "content": "And then?"})
    answer = client.responses.create(**ask(model, said, **thinking))
    account.pays(model, answer.usage)
    assert "And then?" in answer.output_text


@LINES
def test_parses(account, model):
    answer = account.openai().responses.parse(**ask(model, "Who are you?"), text_format=Person)
    assert isinstance(answer.output_parsed, Person)
    account.pays(model, answer.usage)


@LINES
def test_streams_parsed(account, model):
    with account.openai().responses.stream(**ask(model, "Who are you?"), text_format=Person) as stream:
        answer = stream.until_done().get_final_response()
    assert isinstance(answer.output_parsed, Person)
    account.pays(model, answer.usage)


@LINES
def test_cut_at_its_limit(account, model):
    answer = account.openai().responses.create(**ask(model, "Tell me more, " * 20), max_output_tokens=16)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    account.pays(model, answer.usage)


@pytest.mark.parametrize("model", ["cut-on-responses", "cut-on-chat", "cut-on-messages"])
def test_a_stream_that_fails_says_so(account, model):
    events = list(account.openai().responses.create(**ask(model, "Hello"), stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert (events[-1].type, events[-1].response.status) == ("response.failed", "failed")
    assert events[-1].response.error.code and events[-1].response.error.message
    account.pays_part(5, 25)  # five tokens were sent


def test_asynchronous(account):
    async def both():
        async with account.openai(openai.AsyncOpenAI) as client:
            answer = await client.responses.create(**ask("on-responses", "Good morning"))
            async with client.responses.stream(**ask("on-responses", "Tell me more")) as stream:
                return answer.usage, (await stream.get_final_response()).usage

    for usage in asyncio.run(both()):
        account.pays("on-responses", usage)


def texts(items):
    """The texts of messages, whose content is a string or a list of parts."""
    return [item.content if isinstance(item.content, str) else "".join(part.text for part in item.content) for item in items]


@LINES
def test_continues_stored_responses(account, model):
    client = account.openai()
    first = client.responses.create(**ask(model, "My name is Ada"))
    account.pays(model, first.usage)
    with client.responses.stream(**ask(model, "And then?", previous_response_id=first.id)) as stream:
        second = stream.until_done().get_final_response()
    account.pays(model, second.usage)
    assert second.usage.input_tokens > first.usage.input_tokens
    assert second.previous_response_id == first.id
    assert client.responses.retrieve(second.id).output_text == second.output_text
    page = client.responses.input_items.list(second.id, order="asc", limit=2)
    assert texts(page) == ["My name is Ada", first.output_text, "And then?"]

    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**ask(model, "And then?", previous_response_id=first.id))
    assert refused.value.param == "previous_response_id"
    third = client.responses.create(**ask(model, "Still here?", previous_response_id=second.id, store=False))
    account.pays(model, third.usage)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(third.id)


def test_counts_input_tokens(account):
    count = account.openai().responses.input_tokens.count
    short, long = (count(**ask("on-chat", text)).input_tokens for text in ("Hello", "Hello " * 100))
    assert 0 < short < long
