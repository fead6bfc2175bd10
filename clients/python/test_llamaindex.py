"""Embeddings and reranking by LlamaIndex."""

import asyncio
from decimal import Decimal

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.openai import OpenAIEmbedding
from llama_index.postprocessor.cohere_rerank import CohereRerank

TEXTS = ["quarterly tax returns", "a lighthouse in the fog", "the fog at sea"]
QUERY = "lighthouse in the fog"


def test_embeddings(account):
    embeddings = OpenAIEmbedding(
        model_name="vector-1", api_base=f"{account.gateway}/v1", api_key=account.key, max_retries=0, embed_batch_size=2
    )
    vectors = embeddings.get_text_embedding_batch(TEXTS)
    query = asyncio.run(embeddings.aget_query_embedding(QUERY))
    likeness = [embeddings.similarity(query, vector) for vector in vectors]
    assert max(range(len(TEXTS)), key=likeness.__getitem__) == 1 and likeness[1] > likeness[0] + 0.3
    (row,) = account.usage()["by_model"]
    assert row["model"] == "vector-1" and row["requests"] == 3  # two batches and the query
    account.owed += row["prompt_tokens"] * Decimal(2) / 1_000_000


def test_rerank(account):
    reranker = CohereRerank(model="order-1", base_url=account.gateway, api_key=account.key, top_n=2)
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in TEXTS]
    best = reranker.postprocess_nodes(nodes, query_str=QUERY)
    assert [node.text for node in best] == [TEXTS[1], TEXTS[2]] and best[0].score > best[1].score
    account.owed += Decimal(2) / 1000
