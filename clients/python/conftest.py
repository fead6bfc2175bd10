"""What the tests of the official Python clients stand on.

clients/python_test.go starts two gateways, one for chat and one for images and
videos, and passes their addresses and the operator's token in TOLLGATE_TEST.
Each test gets accounts of its own, says what it has to pay, and fails where
`/v1/usage` tells another charge.
"""

import asyncio
import json
import os
import time
import urllib.request
from decimal import Decimal
from pathlib import Path

import anthropic
import openai
import pytest
import yaml

SETUP = json.loads(os.environ["TOLLGATE_TEST"])
MODELS = {
    model["id"]: model
    for name in ("catalog.yaml", "media.yaml")
    for model in yaml.load((Path(__file__).parent.parent / "testdata" / name).read_text(), Loader=yaml.BaseLoader)["models"]
}


def call(method, address, token, body=None):
    """Calls the gateway without any client; numbers come as decimals."""
    request = urllib.request.Request(address, method=method, headers={"Authorization": f"Bearer {token}"})
    request.data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer, parse_float=Decimal, parse_int=Decimal)


def member(usage, *names):
    """The first of the names that a usage has, be it an object of a client or a dict."""
    read = usage.get if isinstance(usage, dict) else lambda name: getattr(usage, name, None)
    return next(value for name in names if (value := read(name)) is not None)


class Account:
    """An account with a key, and what it owes for what was answered so far."""

    def __init__(self, gateway, usd):
        self.gateway, self.usd, self.owed = gateway, Decimal(usd), Decimal(0)
        self.id = self.admin("/accounts", {"name": "python"})["id"]
        if self.usd:
            self.admin(f"/accounts/{self.id}/credits", {"usd": usd})
        self.key = self.new_key()

    def admin(self, path, body):
        return call("POST", f"{self.gateway}/admin/v1{path}", SETUP["admin_token"], body)

    def new_key(self, **settings):
        return self.admin(f"/accounts/{self.id}/keys", settings)["key"]

    def openai(self, kind=openai.OpenAI, **settings):
        """The official client, without retries unless they are asked for, so that each answer is seen."""
        return kind(**{"base_url": f"{self.gateway}/v1", "api_key": self.key, "max_retries": 0} | settings)

    def anthropic(self, kind=anthropic.Anthropic, **settings):
        return kind(**{"base_url": f"{self.gateway}/native", "api_key": self.key, "max_retries": 0} | settings)

    def pays(self, model, usage):
        """Notes what the catalog asks for an answer's tokens."""
        taken = member(usage, "prompt_tokens", "input_tokens")
        given = member(usage, "completion_tokens", "output_tokens")
        assert taken > 0 and given > 0, usage
        price = MODELS[model]["price"]
        self.owed += (taken * Decimal(price["input"]) + given * Decimal(price["output"])) / 1_000_000

    def pays_part(self, least, most):
        """Notes the charge of a stream that broke off: of so many tokens, at the price of 1 USD a million either way."""
        until = time.monotonic() + 20
        while (charged := self.usage()["total"]["cost_usd"] - self.owed) == 0 and time.monotonic() < until:
            time.sleep(0.05)
        assert least <= charged * 1_000_000 <= most, charged
        self.owed += charged

    def usage(self):
        return call("GET", f"{self.gateway}/v1/usage", self.key)

    def settle(self):
        """Wants the account charged what it owes, to the nano-dollar; a request that was left is settled a little later."""
        until = time.monotonic() + 20
        while True:
            usage = self.usage()
            if usage["total"]["cost_usd"] == self.owed and usage["balance"]["usd"] == self.usd - self.owed:
                return
            if time.monotonic() > until:
                pytest.fail(f"owed {self.owed} of {self.usd} USD, but the gateway tells {usage['total']} {usage['balance']}")
            time.sleep(0.05)


@pytest.fixture
def accounts():
    """Opens accounts, which have to be charged what they owe at the test's end."""
    opened = []

    def account(usd="10", gateway=SETUP["url"]):
        opened.append(Account(gateway, usd))
        return opened[-1]

    yield account
    for each in opened:
        each.settle()


@pytest.fixture
def account(accounts):
    return accounts()


@pytest.fixture(scope="session")
def run():
    """Runs coroutines in one loop, for clients that keep their connections from test to test."""
    with asyncio.Runner() as runner:
        yield runner.run
