"""Writes forms as clients for Python send them to a file, each as a type and one piece."""
import asyncio
import io
import struct
import sys

import aiohttp
import httpx
import openai
import requests
from aiohttp.abc import AbstractStreamWriter
from requests_toolbelt import MultipartEncoder

NAMES = ["a.wav", "a b.wav", "é.wav", 'a"b".wav', "a'b=c.wav"]
AUDIO = b"RIFF\r\n--\r\n\x00\xff"


def of_httpx(name: str):
    files = {"file": (name, AUDIO, "audio/wav")}
    request = httpx.Request("POST", "http://h/", data={"model": "whisper", "prompt": "é"}, files=files)
    return request.headers["content-type"], request.read()


def of_requests(name: str):
    files = {"file": (name, AUDIO)}
    request = requests.Request("POST", "http://h/", data={"model": "whisper", "prompt": "é"}, files=files).prepare()
    return request.headers["content-type"], request.body


def of_toolbelt(name: str):
    encoder = MultipartEncoder({"model": "whisper", "file": (name, io.BytesIO(AUDIO), "audio/wav")})
    return encoder.content_type, encoder.read()


def of_openai(name: str):
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.headers["content-type"], request.read()))
        return httpx.Response(200, json={"text": ""})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = openai.OpenAI(base_url="http://h/v1", api_key="k", http_client=http)
    client.audio.transcriptions.create(
        file=(name, AUDIO), model="whisper", prompt="é", timestamp_granularities=["word", "segment"], temperature=0.5
    )
    return sent[0]


def of_aiohttp(name: str):
    class Writer(AbstractStreamWriter):
        def __init__(self):
            self.data = b""

        async def write(self, chunk):
            self.data += bytes(chunk)

        async def write_eof(self, chunk=b""):
            self.data += chunk

        async def drain(self):
            pass

        def enable_compression(self, *_args, **_options):
            pass

        def enable_chunking(self):
            pass

        async def write_headers(self, *_args):
            pass

    async def write():
        form = aiohttp.FormData()
        form.add_field("model", "whisper")
        form.add_field("file", AUDIO, filename=name, content_type="audio/wav")
        payload = form()
        writer = Writer()
        await payload.write(writer)
        return payload.headers["content-type"], writer.data

    return asyncio.run(write())


def sized(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


with open(sys.argv[1], "wb") as file:
    for write in (of_httpx, of_requests, of_toolbelt, of_openai, of_aiohttp):
        for each in NAMES:
            content_type, body = write(each)
            file.write(sized(content_type.encode()) + struct.pack(">I", 1) + sized(body))
