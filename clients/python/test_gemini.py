"""The Gemini form with Google's official client, on lines of every form."""

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

LINES = pytest.mark.parametrize("line", ["chat", "responses", "messages"])
RED_DOT = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x04\x00\x00\x00\xb5\x1c\x0c\x02\x00\x00\x00\x0bIDATx\xdac\xfc\xff\x1f"
    b"\x00\x03\x03\x02\x00\xef\x9a\xda\xc7\x00\x00\x00\x00IEND\xaeB`\x82"
)


class Person(BaseModel):
    name: str
    age: int


class Usage:
    """The tokens of an answer, by the names that an account's charge is computed from."""

    def __init__(self, answer):
        usage = answer.usage_metadata
        self.prompt_tokens = usage.prompt_token_count
        self.completion_tokens = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        assert usage.total_token_count == self.prompt_tokens + self.completion_tokens


def client(account, **settings):
    """The official client, kept by the account: a client that nothing refers to is closed."""
    account.google = genai.Client(
        api_key=settings.get("key", account.key), http_options=types.HttpOptions(base_url=account.gateway)
    )
    return account.google


@LINES
def test_answers(account, line):
    model = f"on-{line}"
    config = types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.5)
    answer = client(account).models.generate_content(model=model, contents="Good morning", config=config)
    assert "Good morning" in answer.text
    assert (answer.model_version, answer.candidates[0].finish_reason) == (model, types.FinishReason.STOP)
    account.pays(model, Usage(answer))


@LINES
def test_streams(account, line):
    model = f"on-{line}"
    chunks = list(client(account).models.generate_content_stream(model=model, contents="Tell me more"))
    assert "Tell me more" in "".join(chunk.text or "" for chunk in chunks)
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    account.pays(model, Usage(chunks[-1]))


@LINES
def test_streams_without_waiting(account, run, line):
    model = f"on-{line}"

    async def drain():
        stream = await client(account).aio.models.generate_content_stream(model=model, contents="Tell me more")
        return [chunk async for chunk in stream]

    chunks = run(drain())
    assert "Tell me more" in "".join(chunk.text or "" for chunk in chunks)
    account.pays(model, Usage(chunks[-1]))


@LINES
def test_calls_functions(account, line):
    model = f"on-{line}"
    tool = types.FunctionDeclaration(
        name="get_weather",
        parameters=types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}, required=["city"]),
    )
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[tool])])
    question = types.Content(role="user", parts=[types.Part(text="Please call get_weather")])
    asked = client(account).models.generate_content(model=model, contents=[question], config=config)
    [call] = asked.function_calls
    assert call.name == "get_weather" and isinstance(call.args["city"], str)
    result = types.Part.from_function_response(name=call.name, response={"output": "rain"})
    answer = client(account).models.generate_content(
        model=model, contents=[question, asked.candidates[0].content, types.Content(role="user", parts=[result])], config=config
    )
    assert "rain" in answer.text
    for each in (asked, answer):
        account.pays(model, Usage(each))


@LINES
def test_looks_at_pictures_and_answers_in_json(account, line):
    model = f"on-{line}"
    picture = types.Part.from_bytes(data=RED_DOT, mime_type="image/png")
    seen = client(account).models.generate_content(model=model, contents=["What is it?", picture])
    assert "What is it?" in seen.text
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Person)
    answer = client(account).models.generate_content(model=model, contents="Who?", config=config)
    assert isinstance(answer.parsed, Person)
    for each in (seen, answer):
        account.pays(model, Usage(each))


def test_shows_thoughts_to_those_who_ask(account):
    for include in (True, False):
        config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=include, thinking_budget=2000))
        answer = client(account).models.generate_content(model="thinks-on-chat", contents="Hm?", config=config)
        assert any(part.thought for part in answer.candidates[0].content.parts) == include
        account.pays("thinks-on-chat", Usage(answer))


@LINES
def test_breaks_off(account, line):
    got = []
    with pytest.raises(errors.APIError, match="incomplete"):
        for chunk in client(account).models.generate_content_stream(model=f"cut-on-{line}", contents="Go on"):
            got.append(chunk.text)
    assert got
    account.pays_part(1, 100)


def test_counts_and_lists(account):
    assert client(account).models.count_tokens(model="on-chat", contents="one two three").total_tokens > 2
    names = [model.name for model in client(account).models.list(config={"page_size": 5})]
    assert "models/on-chat" in names and "models/swift-1" not in names and "models/gone-1" not in names
    assert client(account).models.get(model="on-chat").input_token_limit == 128000


def test_is_refused(account, accounts):
    def refusal(model, **settings):
        who = settings.pop("account", account)
        config = types.GenerateContentConfig(**settings.pop("config", {}))
        with pytest.raises(errors.APIError) as caught:
            client(who, **settings).models.generate_content(model=model, contents="hi", config=config)
        return caught.value.code, caught.value.details["error"]["details"][0]["metadata"]["code"]

    assert refusal("no-such") == (404, "not_found")
    assert refusal("on-chat", key="sk-wrong") == (401, "invalid_api_key")
    assert refusal("on-chat", account=accounts("0")) == (402, "insufficient_quota")
    assert refusal("on-chat", config={"tools": [{"google_search": {}}]}) == (400, "invalid_request")
