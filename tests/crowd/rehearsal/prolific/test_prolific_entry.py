"""How participants of the simulated Prolific arrive: placeholders, signed tokens, previews."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

from tests.crowd.rehearsal.prolific.prolific_client import URL, Client, researcher
from tests.crowd.rehearsal.prolific.prolific_client import study as documented

pytestmark = pytest.mark.pure


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def key_of(client: Client, token: str) -> Any:
    """By the published keys, as a researcher's server finds it."""
    keys = jwt.PyJWKSet.from_dict(client.http.get("/.well-known/study/jwks.json").json())
    return keys[jwt.get_unverified_header(token)["kid"]].key


def checked(client: Client, token: str, **options: Any) -> dict[str, Any]:
    return dict(
        jwt.decode(
            token,
            key_of(client, token),
            algorithms=["RS256"],
            issuer="https://www.prolific.com",
            options={
                "require": ["exp", "iat", "iss", "sub", "aud"],
                "verify_aud": False,
                "verify_exp": False,
                "verify_iat": False,
            },
            **options,
        )
    )


def test_it_fills_the_placeholders() -> None:
    with researcher() as client:
        study = client.published()
        taken = client.verb("take", posting=study)
        assert taken["url"].startswith("https://lab.example/join/wolf/?via=p1&")
        assert query_of(taken["url"]) == {
            "via": "p1",
            "PROLIFIC_PID": taken["person"],
            "STUDY_ID": study,
            "SESSION_ID": taken["submission"],
        }


@pytest.mark.parametrize("spelt", ["%7B%7B%25SESSION_ID%25%7D%7D", "{{%25SESSION_ID%25}}"])
def test_it_fills_placeholders_that_were_percent_encoded(spelt: str) -> None:
    with researcher() as client:
        study = client.published(external_study_url=f"https://lab.example/join/?s={spelt}")
        taken = client.verb("take", posting=study)
        assert taken["url"] == f"https://lab.example/join/?s={taken['submission']}"


def test_it_signs_the_entry_where_the_study_asks_for_it() -> None:
    with researcher() as client:
        study = client.published(is_external_study_url_secure=True)
        taken = client.verb("take", posting=study)
        query = query_of(taken["url"])
        token = query.pop("prolific_token")
        claims = checked(client, token)
        assert claims["exp"] - claims["iat"] == 120
        assert claims["iat"] == int(client.sim.clock.now().timestamp())
        assert (claims["sub"], claims["aud"]) == (taken["submission"], URL)
        query.pop("via")
        assert claims["prolific"] == {**query, "workspace_id": "rehearsal"}
        with pytest.raises(jwt.ExpiredSignatureError):  # the simulator's clock began in the past
            jwt.decode(token, key_of(client, token), algorithms=["RS256"], options={"verify_aud": False})


def test_it_forgets_an_old_key() -> None:
    with researcher() as client:
        study = client.published(is_external_study_url_secure=True)
        old = query_of(client.verb("take", posting=study)["url"])["prolific_token"]
        client.sim.signer.rotate()
        new = query_of(client.verb("take", posting=study)["url"])["prolific_token"]
        with pytest.raises(KeyError):
            key_of(client, old)
        assert checked(client, new)


def test_it_signs_only_for_workspaces_that_may() -> None:
    with researcher(secure_enabled=False) as client:
        answer = client.post("studies/", documented(is_external_study_url_secure=True))
        assert answer.status_code == 400


def test_a_preview_makes_no_submission() -> None:
    with researcher() as client:
        study = client.published()
        url = client.verb("preview", posting=study)["url"]
        query = query_of(url)
        assert query["STUDY_ID"] == study and "{{%" not in url
        assert client.get(f"submissions/{query['SESSION_ID']}/").status_code == 404
        assert client.verb("state")["postings"][study]["held"] == 0


def test_it_sends_people_to_several_addresses_in_their_shares() -> None:
    shares = [
        {"external_url": "https://lab.example/a?s={{%SESSION_ID%}}", "total_allocation": 1},
        {"external_url": "https://lab.example/b?s={{%SESSION_ID%}}", "total_allocation": 2},
    ]
    with researcher() as client:
        study = client.published(external_study_url=None, access_details=shares)
        hosts = [urlsplit(client.verb("take", posting=study)["url"]).path for _ in range(3)]
        assert sorted(hosts) == ["/a", "/b", "/b"]
