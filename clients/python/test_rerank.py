"""Reranking by Cohere's client and LangChain's."""

from decimal import Decimal

import cohere
import pytest
from cohere.errors import BadRequestError, UnauthorizedError
from langchain_cohere import CohereRerank
from langchain_core.documents import Document

PRICE = Decimal(2) / 1000
TEXTS = ["quarterly tax returns", "a lighthouse in the fog", "the fog at sea"]
QUERY = "lighthouse in the fog"


def test_cohere(account):
    client = cohere.ClientV2(base_url=account.gateway, api_key=account.key)
    answer = client.rerank(model="order-1", query=QUERY, documents=TEXTS, top_n=2)
    assert [result.index for result in answer.results] == [1, 2]
    assert answer.results[0].relevance_score > answer.results[1].relevance_score
    assert answer.id and answer.meta.billed_units.search_units == 1
    account.owed += PRICE


def test_cohere_v1(account):
    """The older client sends objects to /v1/rerank and asks for the documents."""
    client = cohere.Client(base_url=account.gateway, api_key=account.key)
    answer = client.rerank(model="order-1", query=QUERY, documents=[{"text": text} for text in TEXTS], return_documents=True)
    assert [result.document.text for result in answer.results] == [TEXTS[1], TEXTS[2], TEXTS[0]]
    account.owed += PRICE


def test_cohere_errors(account):
    client = cohere.ClientV2(base_url=account.gateway, api_key=account.key)
    with pytest.raises(BadRequestError) as raised:
        client.rerank(model="order-1", query=QUERY, documents=[])
    assert raised.value.body["error"]["param"] == "documents"
    with pytest.raises(UnauthorizedError):
        cohere.ClientV2(base_url=account.gateway, api_key="sk-wrong").rerank(model="order-1", query=QUERY, documents=TEXTS)


def test_langchain(account):
    reranker = CohereRerank(model="order-1", base_url=account.gateway, cohere_api_key=account.key, top_n=2)
    documents = [Document(page_content=text, metadata={"at": at}) for at, text in enumerate(TEXTS)]
    best = reranker.compress_documents(documents, QUERY)
    assert [document.metadata["at"] for document in best] == [1, 2]
    assert best[0].metadata["relevance_score"] > best[1].metadata["relevance_score"]
    account.owed += PRICE
