"""Every path that the installed clients can ask for, read out of their own source."""

import re
from pathlib import Path

import anthropic
import openai
import pytest

CALL = re.compile(r'self\._(get|post|put|patch|delete|get_api_list)\(\s*(?:path_template\(\s*)?f?"(/[^"]*)"')


def paths(package):
    """The methods and paths of a client, with a word for each id."""
    found = set()
    for file in Path(package.__file__).parent.glob("resources/**/*.py"):
        for method, path in CALL.findall(file.read_text()):
            found.add((method.replace("get_api_list", "get"), re.sub(r"\{[^}]*\}", "some-id", path)))
    assert len(found) > 50, "the client's source looks different now"
    return sorted(found)


@pytest.mark.parametrize("package", [openai, anthropic], ids=lambda package: package.__name__)
def test_no_path_of_the_client_is_doubted(account, package):
    """What is not served says what is offered: the address is right, so a doubt would mislead."""
    client = getattr(account, package.__name__)()
    doubted = []
    for method, path in paths(package):
        try:
            getattr(client, method)(path, cast_to=object)
        except package.APIStatusError as error:
            if error.status_code >= 500 or "There is no endpoint" in str(error):
                doubted.append(f"{method} {path}: {error}")
    assert not doubted, "\n".join(doubted)
