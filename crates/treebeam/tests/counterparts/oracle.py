"""Reads requests, one per line, and says of each what the types of its provider's own library have against it."""

import json
import sys
import warnings
from collections.abc import Iterator

from anthropic.types import message_create_params as messages
from google.genai import types as gemini
from ollama import Message, Options
from ollama._types import ChatRequest
from openai.types.chat import completion_create_params as chat
from openai.types.responses import response_create_params as responses
from pydantic import TypeAdapter, ValidationError

TABLES = {
    "openai": (responses.ResponseCreateParams, responses.ResponseCreateParamsBase),
    "openai-chat": (chat.CompletionCreateParams, chat.CompletionCreateParamsBase),
    "anthropic": (messages.MessageCreateParams, messages.MessageCreateParamsBase),
}
warnings.simplefilter("ignore")
ADAPTERS = {name: TypeAdapter(table) for name, (table, _) in TABLES.items()}


def exhaust(value):
    """What is declared as iterable is checked when it is walked, and not before."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple, Iterator)) and type(value).__name__ != "ValidatorIterator":
        return
    for part in value:
        exhaust(part)


def unknown(body, known):
    names = sorted(set(body) - set(known))
    return [f"unknown: {name}" for name in names]


def table(provider, body):
    known = {name for base in TABLES[provider][1].__mro__ for name in getattr(base, "__annotations__", {})}
    exhaust(ADAPTERS[provider].validate_python(body))
    return unknown(body, known | {"stream"})


def google(body):
    """On the wire the library's own settings are spread over the body; `generationConfig` has the model's."""
    exhaust(TypeAdapter(list[gemini.Content]).validate_python(body["contents"]))
    config = gemini.GenerationConfig.model_validate(body["generationConfig"])
    # An unknown level is kept with a warning, so that old libraries understand new servers.
    level = config.thinking_config and config.thinking_config.thinking_level
    known = level is None or level.name in gemini.ThinkingLevel.__members__
    odd = [] if known else [f"unknown: {level}"]
    return odd + unknown(body, {"contents", "generationConfig"})


def ollama(body):
    ChatRequest.model_validate(body)
    # Where the library takes any table besides its own types, its own types count.
    TypeAdapter(list[Message]).validate_python(body["messages"])
    options = body.get("options", {})
    Options.model_validate(options)
    return unknown(body, ChatRequest.model_fields) + unknown(options, Options.model_fields)


def complaints(provider, body):
    try:
        if provider in TABLES:
            return table(provider, body)
        return google(body) if provider == "gemini" else ollama(body)
    except ValidationError as error:
        return [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]


for line in sys.stdin:
    request = json.loads(line)
    print(" | ".join(complaints(request["provider"], request["body"])).replace("\n", " "), flush=True)
