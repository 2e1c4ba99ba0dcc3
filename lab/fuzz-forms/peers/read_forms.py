"""Reads the forms of a file with Starlette and python-multipart. Writes a line of JSON for each: its parts, or null."""
import asyncio
import json
import logging
import struct
import sys

from starlette.datastructures import UploadFile
from starlette.requests import Request

logging.disable()


def forms_of(data: bytes):
    offset = 0

    def number() -> int:
        nonlocal offset
        offset += 4
        return struct.unpack_from(">I", data, offset - 4)[0]

    def sized() -> bytes:
        nonlocal offset
        length = number()
        offset += length
        return data[offset - length : offset]

    while offset < len(data):
        content_type = sized()
        yield content_type, [sized() for _ in range(number())]


def to_hex(value) -> str:
    return (value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")).hex()


async def read(content_type: bytes, pieces: list[bytes]):
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    messages.append({"type": "http.request", "body": b"", "more_body": False})
    left = iter(messages)

    async def receive():
        return next(left)

    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", content_type)]}
    parts = []
    try:
        form = await Request(scope, receive).form()
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                parts.append([to_hex(name), to_hex(value.filename), to_hex(await value.read())])
            else:
                parts.append([to_hex(name), None, to_hex(value)])
    except Exception:
        return None
    return parts


async def main(source: str, target: str) -> None:
    with open(source, "rb") as file:
        data = file.read()
    with open(target, "w") as out:
        for content_type, pieces in forms_of(data):
            out.write(json.dumps(await read(content_type, pieces)) + "\n")


asyncio.run(main(*sys.argv[1:]))
