"""LangChain on the official clients: OpenAI's by chat completions and by responses, Anthropic's."""

import openai
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"Rain in {city}, 4 degrees"


class Person(BaseModel):
    """Who somebody is."""

    name: str
    age: int


def by_chat(account, model, **more):
    return ChatOpenAI(model=model, base_url=f"{account.gateway}/v1", api_key=account.key, max_retries=0, stream_usage=True, **more)


def by_responses(account, model, **more):
    return by_chat(account, model, use_responses_api=True, **more)


def by_messages(account, model, **more):
    return ChatAnthropic(
        model=model, base_url=f"{account.gateway}/native", api_key=account.key, max_retries=0, **{"max_tokens": 1000} | more
    )


WAYS = pytest.mark.parametrize("way", [by_chat, by_responses, by_messages])
LINES = pytest.mark.parametrize("model", ["on-chat", "on-responses", "on-messages"])


@WAYS
@LINES
def test_answers(account, way, model):
    answer = way(account, model).invoke([SystemMessage("Be brief."), HumanMessage("Good morning")])
    assert "Good morning" in answer.text
    assert (answer.response_metadata.get("model_name") or answer.response_metadata["model"]) == model
    assert answer.usage_metadata["total_tokens"] == answer.usage_metadata["input_tokens"] + answer.usage_metadata["output_tokens"]
    account.pays(model, answer.usage_metadata)


@WAYS
@LINES
def test_streams(account, way, model):
    whole = None
    for chunk in way(account, model).stream("Tell me more"):
        whole = chunk if whole is None else whole + chunk
    assert "Tell me more" in whole.text
    account.pays(model, whole.usage_metadata)


@WAYS
@LINES
def test_calls_tools(account, way, model):
    bound = way(account, model).bind_tools([get_weather])
    said = [HumanMessage("Please get weather for Oslo")]
    answer = bound.invoke(said)
    account.pays(model, answer.usage_metadata)
    assert [call["name"] for call in answer.tool_calls] == ["get_weather"] and "city" in answer.tool_calls[0]["args"]
    result = get_weather.invoke(answer.tool_calls[0])
    assert isinstance(result, ToolMessage)
    answer = bound.invoke([*said, answer, result])
    account.pays(model, answer.usage_metadata)
    assert "4 degrees" in answer.text


@WAYS
@LINES
def test_streams_tool_calls(account, way, model):
    whole = None
    for chunk in way(account, model).bind_tools([get_weather], tool_choice="get_weather").stream("How is Oslo?"):
        whole = chunk if whole is None else whole + chunk
    assert [call["name"] for call in whole.tool_calls] == ["get_weather"] and "city" in whole.tool_calls[0]["args"]
    account.pays(model, whole.usage_metadata)


@WAYS
@LINES
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_answers_in_a_shape(account, way, model, method):
    answer = way(account, model).with_structured_output(Person, include_raw=True, method=method).invoke("Who are you?")
    assert isinstance(answer["parsed"], Person), answer
    account.pays(model, answer["raw"].usage_metadata)


@pytest.mark.parametrize("model", ["thinks-on-chat", "thinks-on-responses", "thinks-on-messages"])
def test_thinks(account, model):
    """What a model has thought goes back with the conversation, whatever client it came by."""
    for client in (
        by_responses(account, model, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"], store=False),
        by_messages(account, model, max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 1024}),
    ):
        said = [HumanMessage("Why?")]
        answer = client.invoke(said)
        account.pays(model, answer.usage_metadata)
        assert [block["type"] for block in answer.content_blocks][0] == "reasoning", answer.content
        answer = client.invoke([*said, answer, HumanMessage("And then?")])
        account.pays(model, answer.usage_metadata)
        assert "And then?" in answer.text


@WAYS
def test_asynchronous(account, way, run):
    async def both():
        client = way(account, "on-chat")
        return [await client.ainvoke("Good morning"), [chunk async for chunk in client.astream("Tell me more")]]

    answer, chunks = run(both())
    account.pays("on-chat", answer.usage_metadata)
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    account.pays("on-chat", whole.usage_metadata)


def test_batches(account):
    for answer in by_chat(account, "on-chat").batch(["One", "Two", "Three"]):
        account.pays("on-chat", answer.usage_metadata)


def test_errors(account):
    with pytest.raises(openai.BadRequestError):
        by_chat(account, "nothing-1").invoke("Hello")
    account.key = "sk-nobody"
    with pytest.raises(openai.AuthenticationError):
        by_responses(account, "on-chat").invoke("Hello")
    account.key = account.new_key()
