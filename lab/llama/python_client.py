"""Asks the gateway through OpenAI's SDK for Python: python_client.py BASE_URL prints one JSON object."""
import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
messages = [{"role": "user", "content": "Tell me something from Python."}]
found = {"version": openai.__version__}

raw = client.chat.completions.with_raw_response.create(model="tiny", messages=messages, max_tokens=16)
found["chat"] = {"id": raw.headers["x-request-id"], "usage": raw.parse().usage.model_dump()}

raw = client.chat.completions.with_raw_response.create(
    model="tiny", messages=messages, max_tokens=16, stream=True, stream_options={"include_usage": True}
)
usage = [chunk.usage for chunk in raw.parse() if chunk.usage]
found["stream"] = {"id": raw.headers["x-request-id"], "usage": usage[-1].model_dump()}

raw = client.embeddings.with_raw_response.create(model="tiny-embed", input=["one text", "and another"])
found["embeddings"] = {"id": raw.headers["x-request-id"], "usage": raw.parse().usage.model_dump()}

try:
    client.chat.completions.create(model="nobody", messages=messages)
except openai.NotFoundError as error:
    found["unknown"] = error.code

print(json.dumps(found))
