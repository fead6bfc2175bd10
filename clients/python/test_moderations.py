"""Moderations by OpenAI's client."""

from decimal import Decimal

import openai
import pytest

PRICE = Decimal("0.5") / 1000


def test_openai(account):
    client = account.openai()
    answer = client.moderations.create(model="judge-1", input=["A quiet evening.", "A story about violence."])
    assert answer.model == "judge-1" and [result.flagged for result in answer.results] == [False, True]
    assert answer.results[1].categories.violence and answer.results[1].category_scores.violence > 0.5
    account.owed += PRICE


def test_openai_parts_without_a_model(account):
    client = account.openai()
    answer = client.moderations.create(
        input=[
            {"type": "text", "text": "violence"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ]
    )
    (result,) = answer.results
    assert answer.model == "judge-1" and result.flagged and "image" in result.category_applied_input_types.violence
    account.owed += PRICE


def test_openai_errors(account):
    client = account.openai()
    with pytest.raises(openai.BadRequestError) as raised:
        client.moderations.create(model="judge-1", input=[])
    assert raised.value.code == "invalid_request" and raised.value.param == "input"
    with pytest.raises(openai.BadRequestError) as raised:
        client.moderations.create(model="swift-1", input="a")
    assert raised.value.code == "model_not_found"
