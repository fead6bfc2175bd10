"""Images and videos with the official OpenAI client: jobs, polled by its own get."""

import base64
import time
import urllib.request
from decimal import Decimal

import openai
import pytest
from conftest import SETUP

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def account(accounts):
    return accounts(gateway=SETUP["media"])


def picture(name):
    return name, PIXEL, "image/png"


def finished(client, path):
    until = time.monotonic() + 60
    while (job := client.get(path, cast_to=object))["status"] in ("queued", "processing"):
        assert time.monotonic() < until, job
        time.sleep(0.05)
    assert job["status"] == "succeeded", job
    return job


def check_pictures(client, submitted, count):
    """The extra members of the client's answer name the job, whose links lead to pictures."""
    assert (submitted.object, submitted.status, submitted.data) == ("image.generation.job", "queued", None)
    job = finished(client, f"/images/jobs/{submitted.id}")
    assert len(job["data"]) == count
    for result in job["data"]:
        with urllib.request.urlopen(result["url"], timeout=30) as answer:
            assert answer.headers["content-type"].startswith("image/") and answer.read()


def test_generates_images(account):
    client = account.openai()
    raw = client.images.with_raw_response.generate(model="easel-1", prompt="a red hat", n=2, size="1024x1024", quality="high")
    assert raw.status_code == 202
    check_pictures(client, raw.parse(), 2)
    account.owed += 2 * Decimal("0.03")


def test_edits_an_image_with_a_mask(account):
    client = account.openai()
    job = client.images.edit(model="easel-1", prompt="make it blue", image=picture("a.png"), mask=picture("m.png"), n=1, size="auto")
    check_pictures(client, job, 1)
    account.owed += Decimal("0.03")


def test_edits_several_images(account):
    client = account.openai()
    job = client.images.edit(model="easel-1", prompt="put one on the other", image=[picture("a.png"), picture("b.png")])
    check_pictures(client, job, 1)
    account.owed += Decimal("0.03")


def content(picture):
    """Returns the bytes of a picture, which its link and its base64 must have in common."""
    raw = base64.b64decode(picture.b64_json)
    with urllib.request.urlopen(picture.url, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("image/") and answer.read() == raw
    return raw


def test_waits_for_pictures(account):
    """With a key that waits, the methods for images return the images."""
    client = account.openai(api_key=account.new_key(wait_for_pictures=True))
    generated = client.images.generate(model="easel-1", prompt="a red hat", n=2)
    assert len(generated.data) == 2 and all(content(picture) for picture in generated.data)
    assert (generated.usage.images, generated.usage.total_tokens) == (2, 0)
    edited = client.images.edit(model="easel-1", prompt="make it blue", image=picture("a.png"))
    assert content(edited.data[0])
    [inline] = client.images.generate(model="easel-1", prompt="a hat", response_format="b64_json").data
    assert base64.b64decode(inline.b64_json) and inline.url is None
    [linked] = client.images.generate(model="easel-1", prompt="a hat", response_format="url").data
    assert linked.url and linked.b64_json is None
    account.owed += 5 * Decimal("0.03")


def test_waits_once(account):
    """Any key can wait for one request; without a wait, base64 is refused."""
    client = account.openai()
    [waited] = client.images.generate(model="easel-1", prompt="a hat", extra_headers={"Prefer": "wait=60"}).data
    assert content(waited)
    account.owed += Decimal("0.03")
    with pytest.raises(openai.BadRequestError) as raised:
        client.images.generate(model="easel-1", prompt="a hat", response_format="b64_json")
    assert raised.value.param == "response_format"


def test_makes_a_video(account):
    client = account.openai()
    image = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    body = {"model": "reel-1", "prompt": "the hat falls", "duration": 2, "image": image}
    submitted = client.post("/videos/generations", cast_to=object, body=body)
    job = finished(client, f"/videos/jobs/{submitted['id']}")
    request = urllib.request.Request(job["data"][0]["url"], headers={"Range": "bytes=0-9"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert (answer.status, answer.headers["content-type"]) == (206, "video/mp4")
    account.owed += 2 * Decimal("0.05")
    with pytest.raises(openai.NotFoundError):
        client.get(f"/images/jobs/{submitted['id']}", cast_to=object)


def test_repeats_with_an_idempotency_key(account):
    client = account.openai()
    jobs = [
        client.images.generate(model="easel-1", prompt="a green hat", extra_headers={"Idempotency-Key": "green-hat"}) for _ in range(2)
    ]
    assert jobs[0].id == jobs[1].id
    finished(client, f"/images/jobs/{jobs[0].id}")
    account.owed += Decimal("0.03")


REFUSALS = [
    (openai.BadRequestError, "unsupported_resolution", "size", {"model": "easel-1", "prompt": "a hat", "size": "8K"}),
    (openai.BadRequestError, "invalid_request", "stream", {"model": "easel-1", "prompt": "a hat", "stream": True}),
    (openai.BadRequestError, "invalid_request", "n", {"model": "easel-1", "prompt": "a hat", "n": 5}),
    (openai.BadRequestError, "missing_prompt", "prompt", {"model": "easel-1", "prompt": ""}),
    (openai.BadRequestError, "model_not_found", "model", {"model": "swift-1", "prompt": "a hat"}),
]


@pytest.mark.parametrize(("kind", "code", "param", "asked"), REFUSALS, ids=lambda value: value if isinstance(value, str) else "")
def test_tells_what_is_wrong(account, kind, code, param, asked):
    with pytest.raises(kind) as raised:
        account.openai().images.generate(**asked)
    assert (raised.value.code, raised.value.param) == (code, param)


def test_tells_of_no_job_and_no_balance(accounts):
    with pytest.raises(openai.NotFoundError) as raised:
        accounts(gateway=SETUP["media"]).openai().get("/videos/jobs/job_unknown", cast_to=object)
    assert raised.value.code == "job_not_found"
    with pytest.raises(openai.APIStatusError) as raised:
        accounts("0", SETUP["media"]).openai().images.generate(model="easel-1", prompt="a hat")
    assert (raised.value.status_code, raised.value.code) == (402, "insufficient_quota")
