"""Speech, transcriptions and translations by OpenAI's client."""

import asyncio
from decimal import Decimal

import openai
import pytest

TEXT = "A lighthouse in the fog."
CHARACTER = Decimal(15) / 1_000_000
SECOND = Decimal("0.006") / 60


def test_speech_and_transcription(account, tmp_path):
    client = account.openai()
    file = tmp_path / "speech.wav"
    with client.audio.speech.with_streaming_response.create(
        model="voice-1", voice="alloy", input=TEXT, response_format="wav"
    ) as answer:
        assert answer.headers["content-type"] == "audio/wav"
        answer.stream_to_file(file)
    account.owed += len(TEXT) * CHARACTER
    with file.open("rb") as opened:
        answer = client.audio.transcriptions.create(model="scribe-1", file=opened)
    assert answer.text == TEXT and answer.usage.seconds == 2
    account.owed += 2 * SECOND
    with file.open("rb") as opened:
        answer = client.audio.translations.create(model="scribe-1", file=opened)
    assert answer.text == TEXT
    account.owed += 2 * SECOND


def test_transcription_formats(account):
    client = account.openai()
    sound = client.audio.speech.create(model="voice-1", voice="alloy", input=TEXT).content
    account.owed += len(TEXT) * CHARACTER
    for response_format in ("text", "srt", "vtt"):
        answer = client.audio.transcriptions.create(
            model="scribe-1", file=("speech.mp3", sound), response_format=response_format
        )
        assert TEXT in answer
        account.owed += 2 * SECOND
    answer = client.audio.transcriptions.create(
        model="scribe-1",
        file=("speech.mp3", sound),
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert answer.segments[0].text == TEXT and answer.duration == 2
    account.owed += 2 * SECOND


def test_streams(account):
    client = account.openai()
    sound = client.audio.speech.create(model="voice-1", voice="alloy", input=TEXT, response_format="pcm").content
    account.owed += len(TEXT) * CHARACTER
    with client.audio.transcriptions.create(model="scribe-1", file=("speech.pcm", sound), stream=True) as events:
        last = list(events)[-1]
    assert last.type == "transcript.text.done" and last.text == TEXT
    account.owed += SECOND


def test_async_speech(account):
    async def receive():
        async with (
            account.openai(openai.AsyncOpenAI) as client,
            client.audio.speech.with_streaming_response.create(
                model="voice-1", voice="alloy", input=TEXT, response_format="pcm"
            ) as answer,
        ):
            return b"".join([piece async for piece in answer.iter_bytes()])

    assert len(asyncio.run(receive())) > 2 * 24_000
    account.owed += len(TEXT) * CHARACTER


def test_errors(account):
    client = account.openai()
    with pytest.raises(openai.BadRequestError) as raised:
        client.audio.speech.create(model="voice-1", voice="alloy", input="")
    assert raised.value.code == "invalid_request" and raised.value.param == "input"
    with pytest.raises(openai.BadRequestError) as raised:
        client.audio.transcriptions.create(model="voice-1", file=("speech.mp3", b"ID3"))
    assert raised.value.code == "model_not_found"
    with pytest.raises(openai.APIStatusError) as raised:
        client.audio.transcriptions.create(model="scribe-1", file=("speech.mp3", bytes(2 << 20)))
    assert raised.value.status_code == 413 and raised.value.param == "file"
