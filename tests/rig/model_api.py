"""A stand-in for the APIs of agents' vendors: a model that calls the shell tool, then says that it is done.

It speaks Anthropic's messages, OpenAI's responses and chat completions, and Gemini's content, streamed or whole. Each
turn in which the agent offers a shell tool calls it with the next of the given commands. So a published agent runs a
"model's" command without a login.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

REPLY = "the model is done"
# Names of the shell tool: Claude Code; Codex; Gemini; Copilot, OpenCode.
SHELLS = ("Bash", "exec_command", "shell", "shell_command", "local_shell", "run_shell_command", "bash")

Events = Iterator[tuple[str, dict[str, Any]]]


def model_api(*commands: str) -> Any:
    """A canary's answers for a model that wants to run *commands*, one after the other."""

    def respond(method: str, target: str, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        path = target.partition("?")[0]
        asked = json.loads(body) if body.startswith(b"{") else {}
        if method != "POST" or "count_tokens" in path or "countTokens" in path:
            return _plain({"data": [], "models": [], "input_tokens": 1, "totalTokens": 1})
        done = _results(asked)
        command = commands[done] if done < len(commands) else ""
        tool = _shell(asked) if command else None
        if path.endswith("/messages"):
            return _answer(asked, list(_anthropic(tool, command, done)), named=True)
        if path.endswith("/responses"):
            return _answer(asked, list(_responses(tool, command, done)), named=True)
        if path.endswith("/chat/completions"):
            return _answer(asked, list(_chat(tool, command, done, whole=not asked.get("stream"))))
        if "enerateContent" in path:
            return _answer({"stream": "stream" in path}, list(_gemini(tool, command)))
        return _plain({})

    return respond


def _plain(value: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()


def _answer(asked: dict[str, Any], events: Any, *, named: bool = False) -> tuple[int, dict[str, str], bytes]:
    """A stream of *events*, or the last one, which has the whole answer."""
    if not asked.get("stream"):
        value = events[-1][1]
        return _plain(value.get("response", value))
    lines = [f"event: {name}\n" * named + f"data: {json.dumps(value)}\n\n" for name, value in events]
    return 200, {"content-type": "text/event-stream"}, "".join(lines).encode()


def _shell(asked: dict[str, Any]) -> dict[str, Any] | None:
    """The shell tool among those that are offered: its name and its parameters."""
    offered = [each.get("function", each) for each in _list(asked, "tools")]
    offered += [one for each in offered for one in each.get("functionDeclarations", ())]
    return next((each for each in offered if each.get("name", each.get("type")) in SHELLS), None)


def _results(asked: dict[str, Any]) -> int:
    """How many results of tools the agent has sent."""
    text = json.dumps([_list(asked, name) for name in ("messages", "input", "contents")])
    return sum(map(text.count, ('"tool_result"', '"function_call_output"', '"role": "tool"', '"functionResponse"')))


def _list(asked: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = asked.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _arguments(tool: dict[str, Any], command: str) -> dict[str, Any]:
    """What *tool* wants to be called with."""
    schema = tool.get("input_schema") or tool.get("parameters") or tool.get("parametersJsonSchema") or {}
    known = schema.get("properties", {})
    name = "cmd" if "cmd" in known else "command"
    is_list = known.get(name, {}).get("type") in ("array", "ARRAY")
    words = {"description": "a trial"} if "description" in known else {}
    return {name: ["bash", "-lc", command] if is_list else command, **words}


def _anthropic(tool: dict[str, Any] | None, command: str, number: int) -> Events:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "trial", "usage": usage}
    yield "message_start", {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    if tool is None:
        block: dict[str, Any] = {"type": "text", "text": REPLY}
        start, delta = {**block, "text": ""}, {"type": "text_delta", "text": REPLY}
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool["name"], "input": _arguments(tool, command)}
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    stop = "end_turn" if tool is None else "tool_use"
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": start}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield "message_delta", {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage}
    yield "message_stop", {"type": "message_stop", **message, "content": [block], "stop_reason": stop}


def _responses(tool: dict[str, Any] | None, command: str, number: int) -> Events:
    if tool is None:
        text = {"type": "output_text", "text": REPLY, "annotations": []}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [text]}
    elif tool.get("type") == "local_shell":
        action = {"type": "exec", "command": ["bash", "-lc", command]}
        item = {
            "type": "local_shell_call",
            "id": "c1",
            "call_id": f"call_{number}",
            "status": "completed",
            "action": action,
        }
    else:
        arguments = json.dumps(_arguments(tool, command))
        item = {
            "type": "function_call",
            "id": "c1",
            "call_id": f"call_{number}",
            "name": tool["name"],
            "arguments": arguments,
        }
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield "response.created", {"type": "response.created", "response": {**response, "output": []}}
    yield "response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": response}


def _chat(tool: dict[str, Any] | None, command: str, number: int, *, whole: bool) -> Events:
    said: dict[str, Any] = {"role": "assistant", "content": REPLY}
    if tool is not None:
        function = {"name": tool["name"], "arguments": json.dumps(_arguments(tool, command))}
        said = {
            "role": "assistant",
            "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}],
        }
    choice: dict[str, Any] = {"index": 0, ("message" if whole else "delta"): said, "finish_reason": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": f"chat_{number}", "object": "chat.completion", "model": "trial", "created": 1, "usage": usage}
    ended = "stop" if tool is None else "tool_calls"
    if not whole:
        yield "", {**reply, "choices": [choice]}
        choice = {"index": 0, "delta": {}, "finish_reason": ended}
    yield "", {**reply, "choices": [{**choice, "finish_reason": ended}]}


def _gemini(tool: dict[str, Any] | None, command: str) -> Events:
    part: dict[str, Any] = {"text": REPLY}
    if tool is not None:
        part = {"functionCall": {"name": tool["name"], "args": _arguments(tool, command)}}
    content = {"role": "model", "parts": [part]}
    yield "", {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "trial"}
