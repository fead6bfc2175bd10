"""Embeddings by OpenAI's client and LangChain's."""

import asyncio
import math
from decimal import Decimal

import openai
import pytest
from langchain_openai import OpenAIEmbeddings

TEXTS = ["a lighthouse in the fog", "a lighthouse in the mist", "quarterly tax returns"]


def similarity(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


def check(vectors, length):
    assert [len(vector) for vector in vectors] == [length] * len(TEXTS)
    assert similarity(vectors[0], vectors[1]) > similarity(vectors[0], vectors[2]) + 0.3


def pays(account, tokens):
    assert tokens > 0
    account.owed += tokens * Decimal(2) / 1_000_000


def test_openai(account):
    """The client asks for base64 unless it is told a format."""
    client = account.openai()
    default = client.embeddings.create(model="vector-1", input=TEXTS)
    floats = client.embeddings.create(model="vector-1", input=TEXTS, encoding_format="float", dimensions=32)
    for answer, length in ((default, 256), (floats, 32)):
        assert answer.model == "vector-1" and [vector.index for vector in answer.data] == [0, 1, 2]
        check([vector.embedding for vector in answer.data], length)
        pays(account, answer.usage.prompt_tokens)
    tokens = client.embeddings.create(model="vector-1", input=[[1, 2, 3], [4, 5]])
    assert tokens.usage.prompt_tokens == 5 and len(tokens.data) == 2
    pays(account, 5)


def test_openai_errors(account):
    client = account.openai()
    with pytest.raises(openai.BadRequestError) as raised:
        client.embeddings.create(model="vector-1", input=["a", ""])
    assert raised.value.code == "invalid_request" and raised.value.param == "input[1]"
    with pytest.raises(openai.BadRequestError) as raised:
        client.embeddings.create(model="swift-1", input="a")
    assert raised.value.code == "model_not_found"


def test_langchain(account):
    embeddings = OpenAIEmbeddings(
        model="vector-1", base_url=f"{account.gateway}/v1", api_key=account.key, max_retries=0, check_embedding_ctx_length=False
    )
    check(embeddings.embed_documents(TEXTS), 256)
    assert len(asyncio.run(embeddings.aembed_query(TEXTS[0]))) == 256
    (row,) = account.usage()["by_model"]
    assert row["model"] == "vector-1" and row["requests"] == 2
    pays(account, row["prompt_tokens"])
