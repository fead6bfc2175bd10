"""Every class of error that the official clients know, and what they show of it."""

import anthropic
import openai
import pytest

# model; members of the request; class, status, code and param of the error
CHAT = [
    ("swift-1", {"messages": []}, openai.BadRequestError, 400, "invalid_messages", "messages"),
    ("swift-1", {"messages": [{"role": "wizard", "content": "x"}]}, openai.BadRequestError, 400, "invalid_role", "messages[0].role"),
    ("swift-1", {"max_tokens": 0}, openai.BadRequestError, 400, "invalid_max_tokens", "max_tokens"),
    ("swift-1", {"service_tier": "priority"}, openai.BadRequestError, 400, "invalid_request", "service_tier"),
    ("swift-1", {"messages": [{"role": "user", "content": "x" * (33 << 20)}]}, openai.APIStatusError, 413, "request_too_large", None),
    ("nothing-1", {}, openai.BadRequestError, 400, "model_not_found", "model"),
    ("gone-1", {}, openai.BadRequestError, 400, "model_disabled", "model"),
    ("soon-1", {}, openai.BadRequestError, 400, "model_coming_soon", "model"),
    ("strict-1", {}, openai.BadRequestError, 400, "context_length_exceeded", "messages"),
    ("filter-1", {}, openai.BadRequestError, 400, "content_filter", None),
    ("dear-1", {}, openai.APIStatusError, 402, "insufficient_quota", None),
    ("broken-1", {}, openai.InternalServerError, 502, "upstream_connection_error", None),
    ("slow-1", {}, openai.InternalServerError, 502, "upstream_timeout", None),
    ("empty-1", {}, openai.InternalServerError, 502, "empty_completion", None),
    ("resting-1", {}, openai.InternalServerError, 503, "model_maintenance", "model"),
]
RESPONSES = [
    ("on-responses", {"input": None}, openai.BadRequestError, 400, "invalid_request", "input"),
    ("on-responses", {"previous_response_id": "resp_1"}, openai.BadRequestError, 400, "invalid_request", "previous_response_id"),
    ("on-responses", {"background": True}, openai.BadRequestError, 400, "invalid_request", "background"),
    ("on-responses", {"tools": [{"type": "web_search"}]}, openai.BadRequestError, 400, "invalid_request", "tools[0].type"),
    ("swift-1", {}, openai.BadRequestError, 400, "model_not_found", "model"),
    ("strict-1", {}, openai.BadRequestError, 400, "context_length_exceeded", "input"),
    ("busy-1", {}, openai.InternalServerError, 502, "upstream_busy", None),
    ("resting-1", {}, openai.InternalServerError, 503, "model_maintenance", "model"),
]
MESSAGES = [
    ("on-messages", {"max_tokens": 0}, anthropic.BadRequestError, 400, "invalid_request_error"),
    ("on-messages", {"messages": []}, anthropic.BadRequestError, 400, "invalid_request_error"),
    ("on-messages", {"messages": [{"role": "user", "content": "x" * (33 << 20)}]}, anthropic.ContentTooLargeError, 413,
     "invalid_request_error"),
    ("gone-1", {}, anthropic.BadRequestError, 400, "invalid_request_error"),
    ("strict-1", {}, anthropic.BadRequestError, 400, "invalid_request_error"),
    ("dear-1", {}, anthropic.PaymentRequiredError, 402, "billing_error"),
    ("nothing-1", {}, anthropic.NotFoundError, 404, "not_found_error"),
    ("swift-1", {}, anthropic.NotFoundError, 404, "not_found_error"),
    ("down-1", {}, anthropic.InternalServerError, 502, "api_error"),
    ("resting-1", {}, anthropic.ServiceUnavailableError, 503, "api_error"),
]


def chat(client, model="on-chat", **more):
    return client.chat.completions.create(**{"model": model, "messages": [{"role": "user", "content": "x"}]} | more)


def responses(client, model="on-chat", **more):
    return client.responses.create(**{"model": model, "input": "x"} | more)


def messages(client, model="on-chat", **more):
    return client.messages.create(**{"model": model, "max_tokens": 1000, "messages": [{"role": "user", "content": "x"}]} | more)


def check_openai(error, kind, status, code, param=None):
    assert type(error) is kind, error
    assert (error.status_code, error.code, error.param) == (status, code, param)
    assert error.message and error.type and error.request_id.startswith("req_")
    assert error.response.headers["content-type"] == "application/json"


def check_anthropic(error, kind, status, name):
    assert type(error) is kind, error
    assert (error.status_code, error.body["type"], error.body["error"]["type"], error.type) == (status, "error", name, name)
    assert error.body["error"]["message"] and error.request_id.startswith("req_")


@pytest.mark.parametrize(("model", "more", "kind", "status", "code", "param"), CHAT, ids=lambda value: value if type(value) is str else "")
def test_chat(accounts, model, more, kind, status, code, param):
    with pytest.raises(openai.APIStatusError) as raised:
        chat(accounts("1").openai(), model, **more)
    check_openai(raised.value, kind, status, code, param)


@pytest.mark.parametrize(
    ("model", "more", "kind", "status", "code", "param"), RESPONSES, ids=lambda value: value if type(value) is str else ""
)
def test_responses(accounts, model, more, kind, status, code, param):
    with pytest.raises(openai.APIStatusError) as raised:
        responses(accounts("1").openai(), model, **more)
    check_openai(raised.value, kind, status, code, param)


@pytest.mark.parametrize(("model", "more", "kind", "status", "name"), MESSAGES, ids=lambda value: value if type(value) is str else "")
def test_messages(accounts, model, more, kind, status, name):
    with pytest.raises(anthropic.APIStatusError) as raised:
        messages(accounts("1").anthropic(), model, **more)
    check_anthropic(raised.value, kind, status, name)


def test_keys(account):
    """Keys that are wrong, empty, or not allowed what they ask for."""
    other = account.new_key(allowed_models=["swift-1"])
    elsewhere = account.new_key(allowed_ips=["203.0.113.7"])
    spent = account.new_key(daily_budget_usd="0.000001")
    for key, kind, status, code, param in [
        ("sk-nobody", openai.AuthenticationError, 401, "invalid_api_key", None),
        (other, openai.PermissionDeniedError, 403, "permission_denied", "model"),
        (elsewhere, openai.PermissionDeniedError, 403, "permission_denied", None),
        (spent, openai.APIStatusError, 402, "insufficient_quota", None),
    ]:
        for ask in (chat, responses):
            with pytest.raises(openai.APIStatusError) as raised:
                ask(account.openai(api_key=key))
            check_openai(raised.value, kind, status, code, param)
    for key, kind, status, name in [
        ("sk-nobody", anthropic.AuthenticationError, 401, "authentication_error"),
        (other, anthropic.PermissionDeniedError, 403, "permission_error"),
        (elsewhere, anthropic.PermissionDeniedError, 403, "permission_error"),
        (spent, anthropic.PaymentRequiredError, 402, "billing_error"),
    ]:
        with pytest.raises(anthropic.APIStatusError) as raised:
            messages(account.anthropic(api_key=key))
        check_anthropic(raised.value, kind, status, name)


def test_requests_per_minute(account):
    for ask in (chat, responses):
        hasty = account.openai(api_key=account.new_key(rpm=1))
        account.pays("on-chat", ask(hasty).usage)
        with pytest.raises(openai.RateLimitError) as raised:
            ask(hasty)
        check_openai(raised.value, openai.RateLimitError, 429, "rate_limit_exceeded")
    hasty = account.anthropic(api_key=account.new_key(rpm=1))
    account.pays("on-chat", messages(hasty).usage)
    with pytest.raises(anthropic.RateLimitError) as raised:
        messages(hasty)
    check_anthropic(raised.value, anthropic.RateLimitError, 429, "rate_limit_error")


def test_what_is_not_offered(account):
    client = account.openai()
    with pytest.raises(openai.NotFoundError) as raised:
        client.fine_tuning.jobs.list()
    check_openai(raised.value, openai.NotFoundError, 404, "not_found")
    with pytest.raises(openai.NotFoundError) as raised:
        client.files.list()
    check_openai(raised.value, openai.NotFoundError, 404, "not_found")
    with pytest.raises(anthropic.NotFoundError) as raised:
        account.anthropic().messages.batches.list()
    check_anthropic(raised.value, anthropic.NotFoundError, 404, "not_found_error")
