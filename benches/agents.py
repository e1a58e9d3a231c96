"""Calls to a model through OpenAI's own library: what the part `agents` compares with.

Called as `agents.py URL PROMPT EXPECTED`. Says `ready` when the library is loaded. A line `version` is answered with its
version; a line `AT_ONCE CALLS` with `PROCESSOR_SECONDS WALL_SECONDS`, after so many calls, so many of them at once: one by
one with the library's plain client, more with its asynchronous one. It ends with its input. It judges nothing.
"""

import asyncio
import sys
import time

import openai

URL, PROMPT, EXPECTED = sys.argv[1:]
OPTIONS = {
    "model": "m-1",
    "messages": [{"role": "user", "content": PROMPT}],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def text(chunk):
    return chunk.choices[0].delta.content or "" if chunk.choices else ""


def must_be_whole(pieces):
    if "".join(pieces) != EXPECTED:
        raise SystemExit(f"answered {pieces}")


def one_by_one(client, calls):
    for _ in range(calls):
        with client.chat.completions.create(**OPTIONS) as stream:
            must_be_whole([text(chunk) for chunk in stream])


async def at_once(client, width, calls):
    async def share():
        for _ in range(calls // width):
            async with await client.chat.completions.create(**OPTIONS) as stream:
                must_be_whole([text(chunk) async for chunk in stream])

    await asyncio.gather(*(share() for _ in range(width)))


def main():
    # On a machine that has much else to do nobody is given up early.
    options = {"base_url": URL, "api_key": "none", "timeout": 600}
    client = openai.OpenAI(**options)
    # Connections belong to a loop: it is the same one through all rounds.
    loop, many = asyncio.new_event_loop(), openai.AsyncOpenAI(**options)
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "version":
            print("openai", openai.__version__, flush=True)
            continue
        width, calls = map(int, line.split())
        processor, wall = time.process_time(), time.perf_counter()
        if width == 1:
            one_by_one(client, calls)
        else:
            loop.run_until_complete(at_once(many, width, calls))
        print(time.process_time() - processor, time.perf_counter() - wall, flush=True)


main()
