"""Asks a server through the SDKs for Python: python_further.py BASE_URL REQUESTS prints one JSON object."""
import json
import sys

import anthropic
import openai

url, requests = sys.argv[1], json.loads(sys.argv[2])
openai_client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
anthropic_client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
found = {}


def note(name, raw, is_stream=False):
    parsed = raw.parse()
    dump = lambda each: each.model_dump(mode="json", exclude_unset=True, warnings=False)
    value = [dump(event) for event in parsed] if is_stream else dump(parsed)
    found[name] = {"value": value, "id": raw.headers.get("x-request-id")}


def note_error(name, call):
    try:
        call()
    except (openai.APIStatusError, anthropic.APIStatusError) as error:
        value = {"name": type(error).__name__, "status": error.status_code, "body": error.body}
        found[name] = {"value": value, "id": error.response.headers.get("x-request-id")}


for kind in ("response", "response_call"):
    create = openai_client.responses.with_raw_response.create
    note(f"OpenAI {kind}", create(**requests[kind]))
    note(f"OpenAI {kind}, streamed", create(**requests[kind], stream=True), True)
for kind in ("message", "message_call"):
    create = anthropic_client.messages.with_raw_response.create
    # The SDK has no parameter for it any more.
    request = {**requests[kind], "extra_body": {"temperature": requests[kind].pop("temperature")}}
    del request["temperature"]
    note(f"Anthropic {kind}", create(**request))
    note(f"Anthropic {kind}, streamed", create(**request, stream=True), True)
message = requests["message"]
counted = {key: message[key] for key in ("model", "system", "messages")}
note("Anthropic count of tokens", anthropic_client.messages.with_raw_response.count_tokens(**counted))
response = {**requests["response"], "previous_response_id": "resp_unknown"}
note_error("OpenAI error", lambda: openai_client.responses.create(**response))
wrong = {"extra_body": {"max_tokens": "many"}}
note_error("Anthropic error", lambda: anthropic_client.messages.create(**{**message, **wrong}))
print(json.dumps(found))
