"""The official client of OpenAI for Python against a gateway over https: what it raises for each refusal."""
import os

import httpx
import openai

URL = os.environ["GATEWAY_URL"]
CHAT = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}


def client(key: str) -> openai.OpenAI:
    http = httpx.Client(verify=os.environ["CA_FILE"])
    return openai.OpenAI(base_url=f"{URL}/v1", api_key=key, max_retries=0, http_client=http)


def outcome(key: str, model: str) -> str:
    try:
        answer = client(key).chat.completions.create(model=model, **CHAT)
        return f"answer of {answer.model}"
    except openai.APIStatusError as error:
        return f"{type(error).__name__} {error.status_code} {error.code} retry-after={error.response.headers.get('retry-after')}"


print("right key          ", outcome("right-key", "m"))
print("streamed           ", sum(1 for _ in client("right-key").chat.completions.create(model="m", stream=True, **CHAT)) > 0)
print("wrong key          ", outcome("wrong-key", "m"))
print("model not allowed  ", outcome("narrow-key", "m"))
print("first within limit ", outcome("one-key", "m"))
print("over the limit     ", outcome("one-key", "m"))
